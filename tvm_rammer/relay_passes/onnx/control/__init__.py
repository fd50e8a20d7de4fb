"""Control flow that data decide: an If or a Loop whose condition is computed becomes Relax functions.

    outline          calls in the place of such nodes
    branches, loop   the branches of an If, the body of a Loop, as models of their own (part), and imported
    rounds           rounds of a Loop as the steps of a loop in an rProgram
    collect          states that grow: what a Loop collects, in its place or appended, and those of any size
    ranks            results of one element, with an axis and without, made alike
    functions        what they become, as Relax functions: `choose` for an If, `repeat` for a Loop

Each branch and each body is prepared, cut into regions and planned as "main" is: what is inside is still rPrograms.
What can be decided when the model is compiled never comes here (`fold`, `lower/recurrence/loops`).
"""
