"""Running generated CUDA text without a GPU."""
