"""Figures of Ji and Li, Less is More."""
