"""What is kept: conversations, artifacts, decisions, and what came in and has to go out."""
