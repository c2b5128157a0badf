"""Moments and transforms of the privacy loss of one release, for each family of losses."""
