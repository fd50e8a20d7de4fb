"""How long a plan takes, and why.

simulate         discrete events: predicted spans of all instructions
timeline         what simulations and measured runs have in common
measured         a real run as a timeline
critical_path    why it takes so long
lower_bound, lower_bound_path, lower_bound_choice
                 bounds on the makespan of every plan
bandwidth, reuse   contention for shared bandwidth; weights that stay in caches
ways             other ways to run a graph on a GPU: launches, a CUDA graph, a kernel a wave
predicted        predicted time of a policy's programs
"""
