"""The mechanisms that the case studies compare with, each with its claimed guarantee."""
