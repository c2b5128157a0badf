"""Mechanisms that select one of several candidates."""
