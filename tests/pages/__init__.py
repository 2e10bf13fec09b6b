"""Pages: as HTML, and in a browser."""
