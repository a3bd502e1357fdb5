"""Benchmarks. Each compares two things in one run and says the absolute times too."""
