"""Units: times are in microseconds and sizes in bytes throughout; bandwidths are given in GB/s."""

GBPS = 1e3
"""One GB/s in bytes a microsecond."""
