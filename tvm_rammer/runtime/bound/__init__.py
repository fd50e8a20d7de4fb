"""Results and inputs in arrays: those that a caller binds a module to, and new ones.

binding      what `RammerModule.bind` returns: slots of memory, which state is in which array, a call
results      what a call returns, in new arrays
"""
