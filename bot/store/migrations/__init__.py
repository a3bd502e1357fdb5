"""How a database of an earlier release becomes one of this release.

Each revision is a module of `versions` that says everything itself: it does not import the models, which change.
"""
