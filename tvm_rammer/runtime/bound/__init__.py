"""A module that is bound to arrays of the caller.

binding      what `RammerModule.bind` returns: slots of memory, the turns of states, a call
io_binding   ONNX Runtime's interface in front of it
"""
