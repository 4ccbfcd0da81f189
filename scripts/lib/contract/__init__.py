"""The generator: reads contract/*.toml and writes everything that follows from it."""
