"""Runs: queue, folder, supervisor, log reading, verification."""
