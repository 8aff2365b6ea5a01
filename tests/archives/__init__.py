"""A maker of archives with every defect that crawls have, and what should become of each.

`table.DEFECTS` is the whole list. `records` writes sound archives; the other modules spoil them.
"""
