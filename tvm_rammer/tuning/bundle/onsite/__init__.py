"""What runs in a folder of candidates, beside the machine's GPU: Python, NumPy, and the CUDA driver by ctypes."""
