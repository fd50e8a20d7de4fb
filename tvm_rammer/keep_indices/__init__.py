"""Indices that stay what they are when TVM makes buffers flat.

`FlattenBuffer` simplifies indices as maps of loops (`IterMapSimplify`), and TVM 0.27 gets some of them wrong: it takes
`(159 - i) // 32` for `i // -32 + 4`, `(x % 6 + 4) // 3` for `(x + 4) % 6 // 3`, and breaks on an axis that is added and
taken away again. A reversed repetition, a slice of one, and a shifted window (Swin) have such indices. Functions are
flattened here first, and where an index then has other values, TVM does not see what is divided.

hide      what is hidden, and when
accesses  where the elements are that code accesses, and whether two indices are the same there
"""

from .hide import hide_quotients, keep_indices, lower_blocks

__all__ = ["hide_quotients", "keep_indices", "lower_blocks"]
