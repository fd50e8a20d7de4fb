"""Sliding windows on a GPU: `problem` describes a reduction over windows, `rule` tiles it."""
