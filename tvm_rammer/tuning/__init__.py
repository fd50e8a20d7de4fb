"""Tuning: models -> their functions -> tilings that are built, checked, timed, and written to a log.

The space is the constructed one (`rkernel_gen`), the tools are MetaSchedule's: its builder and runners, its cost
model over its features, its database for what a TVM schedule makes.

    tasks, trial  a function to tune; a tiling that is tried
    search/       what is tried next, and how long
    measure/      building and timing, here or over RPC
    log/          what was measured: written, and read by compilations
    bundle/       a folder that measures where there is neither TVM nor a network
"""
