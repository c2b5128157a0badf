"""Exact tests and bounds of counts: what may be concluded, whatever was learned."""
