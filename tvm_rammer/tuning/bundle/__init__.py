"""Tuning for a GPU elsewhere: `candidates` writes a folder, `onsite` runs in it, `imported` takes its times back."""
