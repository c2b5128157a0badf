"""What is exactly true about a mechanism."""
