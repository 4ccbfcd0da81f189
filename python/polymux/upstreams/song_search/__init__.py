"""Songs by name, from catalogues of others: off until settings name one (`contracts.md` 3)."""
