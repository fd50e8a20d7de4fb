"""Which tilings are tried, and in which order.

tuner     proposes, measures, logs, learns
search    first by the analytical cost model, then by a learned one
budget    how many trials each function gets
progress  shows progress
"""
