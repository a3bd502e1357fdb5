"""The edit form: filled with what applies now, read back as what differs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.cards.form import Form, FormErrors, edit_form, read_form
from bot.cards.form_reading import Sent
from bot.cards.schemes import FAMILIES, about, by_family, family, label
from bot.conversation.request import Changes, Exclusions
from bot.conversation.state import Stage, State
from schemas.api import Capabilities
from schemas.artifacts.plan import Calibration, QuantPlan
from schemas.catalog import Algorithm, Catalogue, Scheme, TensorSpec
from tests import samples
from tests.bot.cards.documents import plan_for
from tests.bot.conversation import samples as states
from tests.runner.planning.catalogue import recorded

OFFER = Capabilities(
    catalogue=recorded().model_copy(update={"attention_schemes": ["fp8"]}),
    entry_points={"own": "/opt/q.py", "quantize_quark": "/opt/quantize_quark.py"},
    model_roots=["/models"],
    output_roots=["/out"],
    datasets=["pileval", "calibration.txt"],
    hub=False,
    remote_code=False,
    engine="local",
)
PLAN = plan_for(global_scheme="fp8", layer_quant_config={"*down_proj": "int4_wo_32"})


def at_plan(plan: QuantPlan = PLAN, offer: Capabilities | None = OFFER, state: State | None = None) -> Form:
    """The form at checkpoint 2."""
    return edit_form(7, state or states.reviewing_plan(), plan, offer, states.RUNNERS)


def at_start(**choices: Any) -> Form:
    """The form at checkpoint 1."""
    request = states.REQUEST.model_copy(update={"choices": choices})
    return edit_form(7, states.reviewing_analysis(request=request), None, OFFER, states.RUNNERS)


def value(form: Form, name: str) -> str | tuple[str, ...]:
    """What a field is filled with."""
    field = form.field(name)
    assert field is not None
    return field.value


def as_sent(form: Form) -> dict[str, Sent]:
    """The form sent back as it was opened."""
    return {field.name: list(field.value) if isinstance(field.value, tuple) else field.value for field in form.fields}


def changed(form: Form, **values: Sent) -> Changes:
    """What is read when these fields are sent otherwise."""
    read = read_form(form, {**as_sent(form), **values})
    assert isinstance(read, Changes), read
    return read


def refused(form: Form, **values: Sent) -> dict[str, str]:
    """The sentences for what is not understood."""
    read = read_form(form, {**as_sent(form), **values})
    assert isinstance(read, FormErrors), read
    return read.errors


def test_the_form_is_filled_with_the_plan() -> None:
    form = at_plan()
    assert (form.conversation, form.digest) == (7, states.PLAN.digest)
    assert {field.name: field.value for field in form.fields} == {
        "global_scheme": "fp8",
        "algorithm": ("none",),
        "kv_cache_scheme": "fp8",
        "min_kv_scale": "",
        "kv_cache_post_rope": "false",
        "calibration_dataset": "pileval",
        "num_calib_data": "128",
        "seq_len": "512",
        "batch_size": "1",
        "exclude_layers": ("lm_head",),
        "layer_quant_config": ("*down_proj = int4_wo_32",),
        "evaluation_intent": "smoke",
        "model_export": "hf_format",
        "entry_point": "quantize_quark",
        "output_dir": "/out/qwen3-8b-quantized",
        "runner": "local",
        "write_algorithm_config": "false",
        "attention_dtype": "none",
        "evaluation_dataset": "",
        "num_eval_data": "",
        "tasks": "",
        "data_type": "auto",
        "multi_gpu": "none",
        "file2file_quantization": "false",
        "tensor_parallel": "",
    }
    assert Form.model_validate_json(form.model_dump_json()) == form


def test_the_output_folder_is_that_of_the_command_where_there_is_one() -> None:
    assert value(at_plan(state=states.reviewing_command()), "output_dir") == states.MANIFEST.output_dir


def test_the_model_can_be_changed_at_the_start_only() -> None:
    assert [field.name for field in at_start().fields][:2] == ["model", "revision"]
    assert at_plan().field("model") is None
    assert edit_form(7, states.failed_at(Stage.INTAKE), None, None).field("model") is not None
    assert changed(at_start(), model="Qwen/Qwen3-4B", revision="main") == Changes(
        model="Qwen/Qwen3-4B", revision="main"
    )


@pytest.mark.parametrize("state", states.all_states().values(), ids=states.all_states().keys())
@pytest.mark.parametrize("offer", [OFFER, None], ids=["known", "unknown"])
@pytest.mark.parametrize("plan", [PLAN, None], ids=["plan", "no plan"])
def test_a_form_sent_as_it_was_changes_nothing(
    state: State, offer: Capabilities | None, plan: QuantPlan | None
) -> None:
    form = edit_form(7, state, plan, offer, states.RUNNERS)
    assert read_form(form, as_sent(form)) == Changes()
    assert read_form(form, {}) == Changes()


def test_only_what_differs_is_a_change() -> None:
    assert changed(at_plan(), global_scheme="int8").choices == {"global_scheme": "int8"}
    assert changed(at_plan(), num_calib_data="256", seq_len="1,024").choices == {
        "calibration": {"num_calib_data": 256, "seq_len": 1024}
    }
    assert changed(at_plan(), calibration_dataset="calibration.txt").choices == {
        "calibration": {"dataset": "calibration.txt"}
    }
    assert changed(at_plan(), output_dir="/out/other", runner="mi300") == Changes(
        output_dir="/out/other", runner="mi300"
    )
    assert changed(at_plan(), evaluation_intent="full", model_export="gguf", entry_point="own").choices == {
        "evaluation_intent": "full",
        "model_export": "gguf",
        "entry_point": "own",
    }
    assert changed(at_plan(), kv_cache_post_rope="on", min_kv_scale="0.001").choices == {
        "kv_cache_post_rope": True,
        "min_kv_scale": 0.001,
    }


def test_a_revision_can_be_taken_back() -> None:
    form = at_start()
    revised = form.model_copy(
        update={
            "fields": tuple(
                field.model_copy(update={"value": "abc123"}) if field.name == "revision" else field
                for field in form.fields
            )
        }
    )
    assert changed(revised, revision=" ") == Changes(revision="")
    assert changed(form, revision="") == Changes()


def test_none_of_it_can_be_asked_for() -> None:
    assert changed(at_plan(), kv_cache_scheme="none").choices == {"kv_cache_scheme": None}
    with_awq = at_plan(plan_for(global_scheme="int4_wo_32", algorithm="awq"))
    assert changed(with_awq, algorithm="none").choices == {"algorithm": None}
    assert changed(with_awq, algorithm=[]).choices == {"algorithm": None}
    assert changed(at_plan(), algorithm=[]) == Changes()
    assert changed(at_plan(), exclude_layers="", layer_quant_config=[]).choices == {
        "exclude_layers": [],
        "layer_quant_config": {},
    }


def test_several_algorithms_are_applied_in_their_order() -> None:
    assert changed(at_plan(), algorithm=["smoothquant", "awq"]).choices == {"algorithm": "smoothquant,awq"}
    both = at_plan(samples.plan(algorithm="smoothquant,awq"))
    assert value(both, "algorithm") == ("smoothquant", "awq")
    assert changed(both, algorithm=["awq", "smoothquant"]) == Changes()  # as browsers send what was chosen


def test_lists_are_read_line_by_line() -> None:
    told = "lm_head\r\n\r\n  *gate , *router\nlm_head\n"
    assert changed(at_plan(), exclude_layers=told).choices == {"exclude_layers": ["lm_head", "*gate", "*router"]}
    pairs = "*down_proj=FP8\n  model.*.k_proj  =  int8 "
    assert changed(at_plan(), layer_quant_config=pairs).choices == {
        "layer_quant_config": {"*down_proj": "fp8", "model.*.k_proj": "int8"}
    }


def test_at_the_start_what_was_not_asked_is_left_to_the_runner() -> None:
    form = at_start(global_scheme="fp8", calibration={"num_calib_data": 64})
    assert value(form, "kv_cache_scheme") == ""
    assert (value(form, "num_calib_data"), value(form, "seq_len")) == ("64", "")
    field = form.field("kv_cache_scheme")
    assert field is not None
    assert [option.value for option in field.options] == ["", "none", "fp8"]
    assert changed(form, kv_cache_scheme="none").choices == {"kv_cache_scheme": None}
    assert changed(form, algorithm="none").choices == {"algorithm": None}
    asked_for_none = at_start(algorithm=None)
    assert value(asked_for_none, "algorithm") == ("none",)


@pytest.mark.parametrize(
    ("name", "sent", "words"),
    [
        ("num_calib_data", "many", "Samples must be a whole number from 1 to 1,000,000."),
        ("num_calib_data", "0", "Samples must be a whole number from 1 to 1,000,000."),
        ("num_calib_data", "1.5", "Samples must be a whole number from 1 to 1,000,000."),
        ("num_calib_data", "9" * 5000, "Samples must be a whole number from 1 to 1,000,000."),
        ("num_calib_data", "\u0661\u0662", "Samples must be a whole number from 1 to 1,000,000."),
        ("seq_len", "", "Tokens of a sample cannot be left empty."),
        ("min_kv_scale", "-1", "Smallest KV scale must be a number of at least 0."),
        ("min_kv_scale", "nan", "Smallest KV scale must be a number of at least 0."),
        ("min_kv_scale", "1e999", "Smallest KV scale must be a number of at least 0."),
        ("global_scheme", "fp9", 'Scheme: "fp9" is not offered.'),
        ("global_scheme", "", "Scheme: choose one."),
        ("algorithm", ["awq", "none"], 'Choose either "none" or algorithms.'),
        ("algorithm", ["magic"], 'Algorithm: "magic" is not offered.'),
        ("output_dir", "", "Output folder cannot be left empty."),
        ("output_dir", "--help", 'Output folder: "--help" begins with a dash, as if it were an option.'),
        ("output_dir", "/out/\u202egnp", 'Output folder: "/out/\\u202egnp" has characters that cannot be seen.'),
        ("output_dir", "/out/\ud800", 'Output folder: "/out/\\ud800" has characters that cannot be seen.'),
        ("output_dir", "x" * 5000, "Output folder: a value is longer than 4,096 characters."),
        ("exclude_layers", "-rf", 'Excluded layers: "-rf" begins with a dash, as if it were an option.'),
        ("layer_quant_config", "*down_proj", '"*down_proj" is not understood. Write pattern = scheme'),
        ("layer_quant_config", "*down_proj = fp9", 'There is no scheme "fp9". There are: amdfp4, '),
        ("layer_quant_config", "a = fp8\na = int8", '"a" stands there twice.'),
        ("layer_quant_config", "\n".join(f"l{n} = fp8" for n in range(1001)), "has 1,001 lines; 1,000 are the most."),
    ],
)
def test_what_is_not_understood_is_said_at_its_field(name: str, sent: Sent, words: str) -> None:
    errors = refused(at_plan(), **{name: sent})
    assert errors.keys() == {name}
    assert words in errors[name]


def test_all_that_is_wrong_is_said_at_once() -> None:
    assert refused(at_plan(), seq_len="x", output_dir="").keys() == {"seq_len", "output_dir"}


def test_a_filled_value_that_is_not_offered_can_stay() -> None:
    form = at_plan(samples.plan(global_scheme="fp9", calibration=Calibration(dataset="wikitext")))
    field = form.field("global_scheme")
    assert field is not None
    assert field.options[-1].label == "fp9 (not offered here)"
    assert read_form(form, as_sent(form)) == Changes()


def test_without_an_offer_everything_is_typed() -> None:
    form = at_plan(offer=None)
    field = form.field("global_scheme")
    assert field is not None
    assert (field.kind, field.options) == ("text", ())
    assert changed(form, global_scheme="int8", algorithm="awq, smoothquant").choices == {
        "global_scheme": "int8",
        "algorithm": "awq,smoothquant",
    }


def test_remote_code_is_offered_only_where_the_runner_runs_it() -> None:
    assert at_plan().field("trust_remote_code") is None
    form = at_plan(offer=OFFER.model_copy(update={"remote_code": True}))
    assert changed(form, trust_remote_code="true").choices == {"trust_remote_code": True}


def test_a_hub_takes_any_dataset() -> None:
    field = at_plan(offer=OFFER.model_copy(update={"hub": True})).field("calibration_dataset")
    assert field is not None
    assert field.kind == "text"
    assert "This runner has: pileval, calibration.txt." in field.help


def test_what_is_no_field_is_passed_over() -> None:
    assert read_form(at_plan(), {"csrf": "x", "__proto__": ["y"]}) == Changes()


def undescribed() -> Catalogue:
    """What a runner tells that describes nothing."""
    found = recorded()
    bare = {"family": "", "description": "", "use_case": ""}
    schemes = {name: scheme.model_copy(update=bare) for name, scheme in found.schemes.items()}
    return found.model_copy(update={"schemes": schemes, "described_algorithms": {}})


def described(**families: str) -> Catalogue:
    """The same, where these schemes are sorted and described."""
    found = undescribed()
    words = {"description": "Small weights", "use_case": "Where memory is short."}
    schemes = {
        name: scheme.model_copy(update={"family": families[name], **words} if name in families else {})
        for name, scheme in found.schemes.items()
    }
    algorithms = {"awq": Algorithm(name="awq", description="Protects what matters", suits="INT4 weights")}
    return found.model_copy(update={"schemes": schemes, "described_algorithms": algorithms})


def test_schemes_are_grouped_by_family() -> None:
    groups: dict[str, list[str]] = {}
    for group, scheme in by_family(undescribed()):
        groups.setdefault(group, []).append(scheme.name)
    assert tuple(groups) == FAMILIES
    assert sum(map(len, groups.values())) == 28
    assert groups["FP8"] == ["fp8", "ptpc_fp8"]
    assert groups["INT8"] == ["int8"]
    assert groups["INT4"][:5] == ["int4_fp8", "int4_wa_64", "int4_wo_32", "int4_wo_64", "int4_wo_128"]
    assert groups["other"] == ["bfp16"]
    assert {"mxfp4", "nvfp4", "amdfp4", "mx9", "mxfp6_e2m3"} <= set(groups["MX/FP4"])


def test_families_are_those_of_the_runner_and_the_common_ones_come_first() -> None:
    catalogue = described(int8="INT8 for everything", int4_wo_128="INT4 weights", int4_wo_32="INT4 weights", fp8="Odd")
    sorted_ = by_family(catalogue)
    groups = list(dict.fromkeys(group for group, _ in sorted_))
    assert groups == ["FP8", "INT8 for everything", "INT4", "INT4 weights", "MX/FP4", "Odd", "other"]
    assert [scheme.name for group, scheme in sorted_ if group == "INT4 weights"] == ["int4_wo_32", "int4_wo_128"]
    assert len(sorted_) == 28


def test_labels_say_what_a_scheme_does() -> None:
    schemes = undescribed().schemes
    assert label(schemes["int4_wo_32"]) == "int4_wo_32: int4 weights, groups of 32"
    assert label(schemes["fp8"]) == "fp8: fp8_e4m3 weights, fp8_e4m3 activations"
    assert about(schemes["fp8"]) == "fp8_e4m3 weights, fp8_e4m3 activations (not described)"
    assert all(len(label(scheme)) <= 75 for scheme in recorded().schemes.values())
    assert label(Scheme(name="new")) == "new"
    assert about(Scheme(name="new")) == "not described"
    assert family(Scheme(name="new", weight=[TensorSpec(dtype="ternary")])) == "other"


def test_what_the_runner_describes_stands_in_the_form() -> None:
    offer = OFFER.model_copy(update={"catalogue": described(fp8="FP8")})
    form = at_plan(offer=offer)
    scheme, algorithm = form.field("global_scheme"), form.field("algorithm")
    assert scheme is not None
    assert algorithm is not None
    (fp8,) = [option for option in scheme.options if option.value == "fp8"]
    assert (fp8.label, fp8.about, fp8.group) == (
        "fp8: Small weights",
        "Small weights. Where memory is short.",
        "FP8",
    )
    told = {option.value: (option.label, option.about) for option in algorithm.options}
    assert told["none"] == ("none", "")
    assert told["awq"] == ("awq: Protects what matters", "Protects what matters. For: INT4 weights")
    assert told["gptq"] == ("gptq", "not described")


def test_what_goes_deeper_than_a_scheme_can_be_changed() -> None:
    form = at_plan()
    assert changed(form, write_algorithm_config="on", file2file_quantization="on").choices == {
        "write_algorithm_config": True,
        "file2file_quantization": True,
    }
    assert changed(form, data_type="float16", multi_gpu="balanced", tensor_parallel="8").choices == {
        "data_type": "float16",
        "multi_gpu": "balanced",
        "tensor_parallel": 8,
    }
    assert changed(form, evaluation_dataset="wikitext", num_eval_data="64", tasks="mmlu,gsm8k").choices == {
        "evaluation_dataset": "wikitext",
        "num_eval_data": 64,
        "tasks": "mmlu,gsm8k",
    }
    assert changed(form, attention_dtype="fp8").choices == {"attention_dtype": "fp8"}


def test_what_goes_deeper_can_be_taken_back() -> None:
    asked = {
        "multi_gpu": "auto",
        "tensor_parallel": 8,
        "tasks": "mmlu",
        "evaluation_dataset": "x",
        "num_eval_data": 4,
        "attention_dtype": "fp8",
        "write_algorithm_config": True,
    }
    form = at_plan(plan_for(global_scheme="fp8").model_copy(update=asked))
    taken = changed(
        form,
        multi_gpu="none",
        tensor_parallel="",
        tasks="",
        evaluation_dataset="",
        num_eval_data="",
        attention_dtype="none",
        write_algorithm_config="false",
    ).choices
    assert taken == {name: False if name == "write_algorithm_config" else None for name in asked}


@pytest.mark.parametrize(
    ("field", "sent", "told"),
    [
        ("tensor_parallel", "0", "Tensor parallel must be a whole number from 1 to 1,024."),
        ("num_eval_data", "many", "Evaluation samples must be a whole number from 1 to 1,000,000."),
        ("tasks", "--steal", 'Evaluation tasks: "--steal" begins with a dash, as if it were an option.'),
        ("data_type", "int4", 'Data type: "int4" is not offered.'),
        ("multi_gpu", "all", 'GPUs: "all" is not offered.'),
    ],
)
def test_what_does_not_fit_is_told_at_its_field(field: str, sent: str, told: str) -> None:
    assert refused(at_plan(), **{field: sent}) == {field: told}


def test_an_engine_without_attention_schemes_has_none_to_choose() -> None:
    catalogue = recorded().model_copy(update={"attention_schemes": []})
    form = at_plan(offer=OFFER.model_copy(update={"catalogue": catalogue}))
    assert form.field("attention_dtype") is None


def test_the_script_of_the_site_can_be_chosen_where_there_is_one() -> None:
    offer = OFFER.model_copy(update={"entry_points": {"own": "/opt/q.py", "site": "/opt/site/run.py"}})
    field = at_plan(offer=offer).field("entry_point")
    assert field is not None
    assert {option.value: option.label for option in field.options}["site"] == "the script of this site"


def test_exclusions_beside_the_defaults_fill_the_whole_list() -> None:
    request = states.REQUEST.model_copy(update={"exclusions": Exclusions(add=("*layers.0.*",))})
    analysis = states.ANALYSIS.model_copy(update={"exclude_defaults": ("lm_head",)})
    form = edit_form(7, states.reviewing_analysis(request=request, analysis=analysis), None, OFFER, states.RUNNERS)
    assert value(form, "exclude_layers") == ("lm_head", "*layers.0.*")
    assert read_form(form, as_sent(form)) == Changes()


ANYTHING = st.one_of(
    st.text(st.characters(exclude_categories=()), max_size=30),
    st.lists(st.text(st.characters(exclude_categories=()), max_size=30), max_size=4),
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from([field.name for field in at_plan().fields]), ANYTHING))
def test_whatever_is_sent_is_read_or_refused(values: dict[str, Sent]) -> None:
    read = read_form(at_plan(), values)
    if isinstance(read, FormErrors):
        assert read.errors.keys() <= values.keys()
        assert read.model_dump_json()
    else:
        assert Changes.model_validate_json(read.model_dump_json()) == read
