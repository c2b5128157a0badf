"""Self-contained HTML pages from templates, with a light and a dark theme, also for phones."""
