"""What is run, on which neighbours, in which blocks: mechanisms, data that are given."""
