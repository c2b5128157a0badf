"""The ledgers of the papers: one TOML file each."""
