"""Sweeps: many models × chips × options, measured by many processes, nothing lost (docs/sweeps.md).

The way of a sweep: `plan` makes variants, `store` says which are known, `serial` or `cluster` has `task` measure the others,
`results` writes the table and `page` the picture.
"""
