"""Models as projects without TVM."""
