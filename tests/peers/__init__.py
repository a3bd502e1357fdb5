"""Local stand-ins for what lies beyond the edge of this project."""
