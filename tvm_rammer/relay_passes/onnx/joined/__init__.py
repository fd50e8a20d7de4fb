"""Loops of as many steps, of which each reads, step by step, what others wrote in that step, or nothing, as one loop.

    chains  which loops can be one, and what lies between them
    join    the one loop

Layers of a recurrent network are such loops. As one loop a layer works on a step while the next layer works on the one
before, wherever they have vEUs of their own; and the two directions of a layer run side by side.
"""
