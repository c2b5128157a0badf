"""The audits themselves, one kind a file, with their results."""
