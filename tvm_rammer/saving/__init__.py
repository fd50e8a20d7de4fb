"""Compiled models on disk: saved by the user, or kept from one process to the next.

    link     an executable as a shared library
    file     the file of a saved model: the library, and behind it an archive of what this package knows of the model
    record   what a compilation decided, as bytes and back
    load     a file as a module that can be called, without compiling and without importing TVM's compiler
    key      names a compilation by all that its result depends on
    cache    a folder of saved models, bounded in bytes

A compiled plan goes in, a file comes out, and the reverse.
"""
