"""The independent check behind every plan. It shares no code with what makes plans.

verify       the rules, one after another
execution    runs a plan abstractly: deadlock, and a vector clock for each `Run`
order        dependences and shared memory, checked against happens-before
dependences  which rTasks read what which rTasks write, found by a sweep
"""
