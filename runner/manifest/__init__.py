"""A confirmed plan to the exact command; one module per entry point."""
