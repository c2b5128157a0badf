"""Running counts: trees, factorisations, streams."""
