"""The independent check behind every plan. It shares no code with what makes plans.

verify       the rules of one program, one after another
execution    runs a plan abstractly: deadlock, and a vector clock for each `Run`
order        dependences and shared memory, checked against happens-before
memory       which bytes a buffer or a view has; one writer for each
dependences  which rTasks read what which rTasks write, found by a sweep
loops        the same for a program of several steps, by induction
steps        what its lanes know of each other, in every step
exits        loops that end when a step says so: nobody begins a step before he knows that there is one
kept         what vEUs keep over all steps: slices of constants, apart from each other
residency    whether the device holds all lanes at once
limits       whether every index fits into 32 bits
sequence     the order between the programs of one schedule
views        operators in no program: what they would copy lies there already
"""
