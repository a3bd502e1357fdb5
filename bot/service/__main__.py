"""`python -m bot.service`: the same as `ptq-bot`."""

from bot.service.commands import main

main(prog_name="ptq-bot")
