"""IOS (MLSys 2021): a dynamic program over stages.

ios                   the policy
blocks                parts of a graph that are planned one after another
endings, stage_graph  which operators may be a last stage; all ways to cut a block into stages
stage_latency         predicted time of a stage
"""
