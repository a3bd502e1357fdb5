"""The HTTP API, the daemon and the command line."""
