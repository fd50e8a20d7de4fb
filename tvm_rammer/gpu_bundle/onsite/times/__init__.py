"""What is timed: contenders in turns, kernels by themselves, and the prices by which plans are made."""
