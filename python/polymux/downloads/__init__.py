"""What comes from pages of the web: downloaders in processes of their own, behind the guard."""
