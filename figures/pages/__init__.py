"""Pages: self-contained HTML from templates, readable on a phone and by day and night."""
