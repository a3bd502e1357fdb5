"""The documents of the workflow, one module each."""
