"""`python -m runner.service`: the same as `ptq-runner`."""

from runner.service.commands import main

main(prog_name="ptq-runner")
