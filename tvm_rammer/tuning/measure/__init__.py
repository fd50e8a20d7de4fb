"""Building and timing a tiling.

bench     MetaSchedule's builder and runners, in other processes with time limits
evaluate  what runs beside a kernel: arguments, check, clock
remote    kernels on other machines
"""
