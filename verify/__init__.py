"""Claims, verdicts, certificates and audits."""
