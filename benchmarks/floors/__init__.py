"""What a request and a token cost with no client at all: the floors that benchmarks are held to."""
