"""OCR engines."""
