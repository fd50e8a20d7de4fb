"""Building a plan: Rammer's Append and Wait, and what they need to know.

builder          an rProgram in the making, with the clock of each vEU
append_operator  SelectvEU, Wait and Append for all rTasks of one operator
select_veu, select_veu_by_data, select_rkernels   the choices of Rammer's Algorithm 1
dependences      which rTasks an rTask reads from
placement, arrival   who runs what; when what an rTask reads is there
events, clocks   signals and waits; what a lane knows of the others
order, memory    how far all lanes surely are; memory of dead buffers for live ones
"""
