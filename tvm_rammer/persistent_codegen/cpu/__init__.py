"""The CPU backend: each vEU is a worker of TVM's thread pool.

rtask        a scheduled kernel -> the function of one rTask
interpreter  the function that walks through one lane of the tables; atomics in sync.ll
program      one parallel launch of all lanes
stamps       time stamps: when each instruction of a real run ended
"""
