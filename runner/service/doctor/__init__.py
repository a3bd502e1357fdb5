"""`ptq-runner doctor`: what is missing, wrong or risky on this host, each with its fix. One module for each topic."""

from runner.service.doctor.examining import Examination, examine, examine_settings, view

__all__ = ["Examination", "examine", "examine_settings", "view"]
