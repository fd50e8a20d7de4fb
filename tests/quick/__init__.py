"""What `./scripts/test --quick` leaves out for the time it takes: `long.txt`, and `make_long`, which writes it."""
