"""Questions about a mechanism: profiles, trade-off functions, guarantees, attacks, accuracy."""
