"""Mechanisms that the case studies compare with. Docstrings state their claimed guarantees."""
