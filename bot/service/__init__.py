"""Wiring: inbox to decisions, decisions to runners and platforms; the daemon and the command line."""
