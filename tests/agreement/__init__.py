"""The product against recorded outcomes, as tables for people: `python -m tests.agreement`."""
