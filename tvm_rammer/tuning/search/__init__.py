"""Which tilings are tried, and in which order.

tuner     proposes, measures, logs, learns
search    first what the rules' model likes best, then what measured times say
budget    how many trials each function gets
progress  tells how it gets on
"""
