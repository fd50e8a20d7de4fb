"""Pools over NCHW images and NCW rows: `code` combines rows, then columns; `rule` has the tilings."""
