"""Engines that compute the profile of a composition, and the choice among them (`choose`)."""
