"""Tuning: models -> their functions -> tilings that are built, checked, timed, and written to a log.

The space is the constructed one (`rkernel_gen`), the tools are MetaSchedule's: its builder and runners, its cost
model over its features, its database for what a TVM schedule makes.

    tasks      models -> distinct functions, with how often each is called
    budget     how many trials each function gets
    search     which tilings are tried next
    bench      builds and runs them: here, or through an RPC tracker (`remote`); `evaluate` is what runs there
    log        appends what was found; several tuners share a folder
    tuner      the loop
    bundle     instead of running: a folder that times the tilings on a machine with a GPU, and back (`imported`)
    command    `tvm-rammer tune`
"""
