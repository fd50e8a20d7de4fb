"""The commands about what is kept on this machine: `cache`, `warm` (what was compiled), `device` (its figures)."""
