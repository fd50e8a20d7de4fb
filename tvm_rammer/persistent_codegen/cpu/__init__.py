"""The CPU backend: each vEU is a lane that some worker walks.

rtask        a scheduled kernel -> the function of one rTask
             keep_remainders hides from LLVM what it would get wrong, keep_values from TVM what would take for ever
pipeline     TVM's lowering, without what rTask functions can be spared of it
interpreter  the function that walks a lane of the tables as far as its waits allow; atomics in sync.ll
calls        how the interpreter calls rTasks: LLVM is not to inline them
program      the function that TVM calls: it resets the counters and launches all lanes
launch       how its code and the workers come together
spread       the workers walk long loops of what is left to stock TVM, too
workers/     the threads that walk lanes: one pool for all modules of a process
stamps       time stamps: when each instruction of a real run ended
"""
