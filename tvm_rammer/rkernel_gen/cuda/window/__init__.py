"""Sliding windows on a GPU: `form` reads the axes of a reduction, `rule` tiles it."""
