"""Slack: cards as Block Kit, events as the core knows them."""
