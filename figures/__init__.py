"""Figures: tables computed below, drawn here."""
