"""Wrong texts and wrong tables of programs, and the proof that each is found."""
