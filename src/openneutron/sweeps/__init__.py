"""Sweeps: compile every combination of models, chips and options in many processes (docs/sweeps.md).

The way of a sweep: `plan` makes variants, `store` says which are known, `serial` or `cluster` has `task` measure the others,
`results` writes the table and `page` the picture.
"""
