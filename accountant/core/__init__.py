"""The base types: mechanism, dominating pair, adjacency and description."""
