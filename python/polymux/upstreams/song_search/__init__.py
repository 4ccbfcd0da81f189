"""Song search by name with online services: disabled unless configured (`contracts.md` 3)."""
