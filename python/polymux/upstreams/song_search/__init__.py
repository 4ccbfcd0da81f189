"""Song search by name in external catalogs: disabled unless configured (`contracts.md` 3)."""
