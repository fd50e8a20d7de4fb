"""Which parts of a prepared module become rPrograms, and how these get back into the module.

eligible        which bindings can be rOperators, and which order stock calls need
partition       regions of rOperators, each described as an RGraph
replace_region  the launches that a region became, in its place
order           the order of the bindings around them
join_models     several models as one module
"""
