"""Configurations of algorithms for families that the engine has none for, derived from families that it has one for."""

from __future__ import annotations

from runner.planning.host_view import HostView
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.plan import AlgorithmConfig, QuantPlan
from schemas.catalog import Catalogue


def written(
    plan: QuantPlan,
    analysis: ModelAnalysis,  # noqa: ARG001
    catalogue: Catalogue,  # noqa: ARG001
    host: HostView,  # noqa: ARG001
) -> list[AlgorithmConfig]:
    """The configuration files that a run of the plan has to bring along; none for algorithms that are built in."""
    return list(plan.algorithm_configs) if plan.write_algorithm_config else []
