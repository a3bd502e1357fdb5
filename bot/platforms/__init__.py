"""Slack, Discord, the page and the script: events in, cards out."""
