"""Convolutions and matrix products on a CPU: `rule` has the tilings, `code` the schedule of one."""
