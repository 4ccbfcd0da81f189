"""Plants faults in the code and runs the tests; see scripts/plant-faults."""
