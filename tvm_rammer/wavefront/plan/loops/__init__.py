"""From the plan of one step to that of a loop.

carry   waits for what other lanes did in the steps before
leave   waits for what says whether there is another step
"""
