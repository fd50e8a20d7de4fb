"""What is done with a failure: `classes`, `shrink`, `reproduce` (as a test file), `summary`."""
