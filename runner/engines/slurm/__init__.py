"""The engine of a cluster: runs are handed to Slurm, whose nodes start the same supervisor in the same folder."""

from runner.engines.slurm.engine import SlurmEngine

__all__ = ["SlurmEngine"]
