"""A request, an analysis and what the engine and the host offer, to a plan."""

from __future__ import annotations

from typing import Any

from runner.planning import algorithm_configs, decisions, estimates, evaluation, layers, rules, values
from runner.planning.decisions import Question
from runner.planning.host_view import HostView
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.plan import (
    Calibration,
    Decision,
    Estimates,
    PlanChoices,
    PlannedModel,
    QuantPlan,
    Severity,
)
from schemas.catalog import Catalogue
from schemas.digest import digest


def make_plan(analysis: ModelAnalysis, choices: PlanChoices, catalogue: Catalogue, host: HostView) -> QuantPlan:
    """Decide everything, with reasons, and say what is known to go wrong.

    The plan may be blocked: its findings then say by what. Pure: the same input gives the same plan. Raises BadRequest
    for a value that must not become part of a command.
    """
    values.check_choices(choices)
    question = Question(analysis, choices, catalogue, host)
    return derived(_Table(question).plan(), analysis, catalogue, host)


def derived(
    plan: QuantPlan,
    analysis: ModelAnalysis,
    catalogue: Catalogue,
    host: HostView,
    readings: Estimates | None = None,
) -> QuantPlan:
    """The plan with all that follows from its decisions made again: whether the exclusions are the engine's own, what
    its patterns match, configurations of algorithms, estimates, findings, risks. What it said of them counts nothing.

    `readings` are estimates of an earlier moment: what was free then, and the runs that had finished by then, is taken
    from them.
    """
    changed = plan.exclude_layers != decisions.default_exclusions(analysis, catalogue)
    plan = plan.model_copy(update={"exclude_layers_changed": changed})
    plan = plan.model_copy(
        update={
            "layer_matches": layers.matches(plan, analysis),
            "algorithm_configs": algorithm_configs.written(plan, analysis, catalogue, host),
        }
    )
    found = estimates.estimate(plan, analysis, catalogue, host)
    if readings is not None:
        found = found.model_copy(update={name: getattr(readings, name) for name in estimates.READINGS})
    plan = plan.model_copy(update={"estimates": found})
    findings = rules.find(plan, analysis, catalogue, host)
    risks = list(dict.fromkeys(finding.code for finding in findings if finding.severity is Severity.WARNS))
    return plan.model_copy(update={"findings": findings, "risks": risks})


class _Table:
    """The decision table while it is filled; later rows depend on earlier ones."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._analysis_digest = digest(question.analysis)  # of a large model: made once, and not for every draft
        self._rows: dict[str, Decision] = {}
        excluded = decisions.exclude_layers(question)
        self._fill(decisions.global_scheme(question, _strings(excluded.value)))
        device = decisions.device(question)
        self._fill(decisions.kv_cache_scheme(question, self.value("global_scheme"), str(device.value)))
        self._fill(excluded, decisions.layer_quant_config(question), decisions.algorithm(question))
        self._fill(*decisions.calibration(question))
        export, trust = decisions.model_export(question), decisions.trust_remote_code(question)
        # Whether a measurement can be made depends on all that follows it in the table, and the program on all of it.
        self._fill(decisions.evaluation_intent(question, "", None), export, device)
        self._fill(decisions.entry_point(question), trust, *decisions.extras(question))
        self._fill(decisions.entry_point(question, self._with_files()))
        why_not = evaluation.why_not(self.plan(), question.analysis, question.catalogue, question.host)
        self._fill(decisions.evaluation_intent(question, self.value("entry_point"), why_not))

    def _with_files(self) -> QuantPlan:
        """The plan so far with the configuration files that its command would name."""
        question, plan = self._question, self.plan()
        written = algorithm_configs.written(plan, question.analysis, question.catalogue, question.host)
        return plan.model_copy(update={"algorithm_configs": written})

    def _fill(self, *rows: Decision) -> None:
        self._rows |= {row.decision: row for row in rows}

    def value(self, decision: str) -> Any:
        """The value of a row that was filled already."""
        return self._rows[decision].value

    def plan(self) -> QuantPlan:
        """The plan that the table says, without findings and estimates."""
        question, value = self._question, self.value
        exclude = _strings(value("exclude_layers"))
        return QuantPlan(
            model=PlannedModel(
                model_type=question.analysis.model.model_type,
                analysis_digest=self._analysis_digest,
                model_path=question.analysis.model.model_path,
            ),
            global_scheme=value("global_scheme"),
            kv_cache_scheme=value("kv_cache_scheme"),
            min_kv_scale=question.choices.min_kv_scale,
            kv_cache_post_rope=bool(question.choices.kv_cache_post_rope),
            exclude_layers=exclude,
            exclude_layers_changed=exclude != question.default_exclusions,
            layer_quant_config=value("layer_quant_config"),
            algorithm=value("algorithm"),
            calibration=Calibration(
                dataset=value("calibration_dataset"),
                num_calib_data=value("num_calib_data"),
                seq_len=value("seq_len"),
                batch_size=value("batch_size"),
            ),
            evaluation_intent=value("evaluation_intent"),
            model_export=value("model_export"),
            entry_point=value("entry_point"),
            device=value("device"),
            trust_remote_code=value("trust_remote_code"),
            write_algorithm_config=bool(question.choices.write_algorithm_config),
            attention_dtype=question.choices.attention_dtype,
            data_type=question.choices.data_type or "auto",
            multi_gpu=question.choices.multi_gpu,
            multi_device=bool(question.choices.multi_device),
            file2file_quantization=bool(question.choices.file2file_quantization),
            num_eval_data=question.choices.num_eval_data,
            evaluation_dataset=question.choices.evaluation_dataset,
            tasks=question.choices.tasks,
            template_file=question.choices.template_file,
            tensor_parallel=question.choices.tensor_parallel,
            decisions=list(self._rows.values()),
        )


def _strings(value: Any) -> list[str]:
    return [str(item) for item in value or []]
