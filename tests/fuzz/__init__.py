"""Fuzzing: random and damaged models, compiled in child processes and judged by others. See docs/fuzzing.md."""
