"""`make soak`, `make faults`, `make fuzz`: each ends by itself, with a table of verdicts."""
