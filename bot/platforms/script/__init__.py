"""A platform that is a transcript: what a person in a thread would see, line by line."""
