"""Songs by their sound, from servers of others: off until settings name one (`contracts.md` 10)."""
