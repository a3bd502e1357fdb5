"""What is kept: conversations, artifacts, decisions, and what came in and has to go out.

`bot.store.store` has the store, `bot.store.unit` what a transaction can do, `bot.store.records` what its readers see.
"""
