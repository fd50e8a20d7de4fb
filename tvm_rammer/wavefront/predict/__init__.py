"""What a plan does in time.

simulate         discrete events: predicted spans of all instructions
measured         a real run in the same form
timeline         that form
critical_path    why it takes so long
lower_bound, lower_bound_path   what no plan can beat
bandwidth, reuse   bandwidth that rTasks share; where a vEU finds weights that it reads again
predicted        what a policy's programs will take
"""
