"""Model source, configuration and tensor headers to a model analysis. Weights are never read."""

from runner.intake.analysis import analyse, needs_remote_code
from runner.intake.files import differences, fingerprint

__all__ = ["analyse", "differences", "fingerprint", "needs_remote_code"]
