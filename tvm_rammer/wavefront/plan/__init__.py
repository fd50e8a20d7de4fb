"""Building a plan: Rammer's Append and Wait, and what they need to know.

builder          an rProgram under construction, with the time at which each vEU is free
append_operator  SelectvEU, Wait and Append for all rTasks of one operator
select_veu, select_veu_by_data, select_rkernels   the choices of Rammer's Algorithm 1
dependences      which rTasks an rTask reads from
overlaps         which rTasks touch the same elements, by their footprints
placement, arrival   which vEU runs which rTasks; when the data of an rTask arrives
events, clocks   signals and waits; vector clocks
loops            from the plan of one step to that of a loop
order, memory    the guaranteed order of operators; offsets in the workspace, dead buffers reused
"""
