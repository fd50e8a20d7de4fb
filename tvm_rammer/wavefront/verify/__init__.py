"""The independent check behind every plan. It shares no code with what makes plans.

verify       the rules, one after another
execution    runs a plan abstractly: what each lane is sure of when it begins an rTask
order        dependences and shared memory, against what lanes are sure of
dependences  which rTasks read what which rTasks write, found by a sweep
"""
