"""What is known of the privacy loss of one release, by family."""
