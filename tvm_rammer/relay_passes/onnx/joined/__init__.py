"""Loops of which each reads, step by step, what the one before it wrote in that step, as one loop.

    chains  which loops can be one, and what lies between them
    join    the one loop

Layers of a recurrent network are such loops. As one loop a layer works on a step while the next layer works on the one
before, wherever they have vEUs of their own.
"""
