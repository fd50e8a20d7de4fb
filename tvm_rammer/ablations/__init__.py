"""What each idea of Rammer's is worth: the same models with it and without it, predicted and measured.

sync        waits between rTasks against a barrier over all vEUs, on random modules   (scripts/ablation sync)
interplay   co-scheduling, and kernels chosen for it: each without the other      (scripts/ablation interplay)
"""
