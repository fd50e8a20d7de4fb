"""Rammer (OSDI 2020) on today's Apache TVM."""
