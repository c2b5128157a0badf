"""What can be asked of a mechanism: profiles, trade-offs, guarantees, accuracy."""
