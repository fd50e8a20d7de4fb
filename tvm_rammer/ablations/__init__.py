"""Ablations of Rammer's ideas: the same models with and without each, predicted and measured.

sync        waits between rTasks against a barrier over all vEUs, on random modules   (scripts/ablation sync)
interplay   co-scheduling, and kernels chosen for it: each without the other      (scripts/ablation interplay)
"""
