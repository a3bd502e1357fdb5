"""Everything that talks to people: the conversation, its cards and its platforms. It speaks HTTP to the runner."""
