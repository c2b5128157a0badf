"""Products that are sums of finitely many terms."""
