"""Models whose shapes vary: one module that compiles itself for each set of shapes that comes, exactly.

    signature        what a model says of its inputs and outputs, without compiling it
    given            what users give for shapes
    dimensions       symbolic dimensions: their names, ranges, and whether the shapes of a call fit
    combine          what a model declares and what users give, put together
    any_length       open dimensions, where one module may serve all sizes of one of them
    specialisations  the modules of the shapes that came last, and those in the making
    module           what `compile` returns for such a model

A model with open dimensions and a way to compile it for static shapes go in, a module that can be called comes out.
"""
