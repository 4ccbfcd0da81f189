"""Song recognition by external services: disabled unless configured (`contracts.md` 10)."""
