"""ONNX's own backend tests, run through the backend: what is right, what is refused and why.

cases    the tests that come with the onnx package, and how a result is judged
workers  child processes with limits, so that a crash or a hang is one case
report   the counts as text
"""
