"""How much is measured afterwards, and on what."""

from __future__ import annotations

import re

from bot.conversation.words import names, values
from bot.conversation.words.cursor import Cursor
from bot.conversation.words.gathered import Gathered
from bot.conversation.words.phrases import PhraseBook
from bot.conversation.words.text import Kind

_EVALUATION = PhraseBook(
    *("evaluation intent", "evaluation_intent", "evaluation", "evaluations", "eval", "evaluate", "evaluate it"),
    *("evaluate the model", "evaluate the result", "evaluating", "evals"),
)
_LEVELS = {
    "none": "none",
    "off": "none",
    "null": "none",
    "smoke": "smoke",
    "quick": "smoke",
    "short": "smoke",
    "full": "full",
    "complete": "full",
    "fully": "full",
}
_LEVEL = PhraseBook(*_LEVELS)
_ADJECTIVE = PhraseBook("smoke", "quick", "full", "complete", "fully")
_SKIP_FLAG = PhraseBook("skip_evaluation", "dont evaluate", "do not evaluate", "no evaluating", "never evaluate")
_ON = PhraseBook("on", "with", "over", "using", "against")
_IT = PhraseBook("it", "the model", "the result", "anything")

_DATASET = PhraseBook(
    *(f"{what} {of}" for what in ("evaluation", "eval") for of in ("dataset", "data set", "data", "text")),
    *("evaluation_dataset", "eval_dataset"),
)
_SAMPLES = PhraseBook(
    *(f"{what} {of}" for what in ("evaluation", "eval") for of in ("samples", "sample count", "data size", "examples")),
    *(
        "num eval data",
        "num_eval_data",
        "num_eval_samples",
        "number of evaluation samples",
        "number of eval samples",
        "eval_samples",
    ),
)
_COUNTED = PhraseBook(
    *("evaluation samples", "eval samples", "samples for evaluation", "samples for the evaluation"),
    *("evaluation examples", "eval examples", "samples of evaluation data", "samples of eval data"),
)
_SAMPLES_WORD = PhraseBook("samples", "examples", "evaluation samples", "eval samples")
_OF = PhraseBook("of", "from")
_TASKS = PhraseBook(
    *("tasks", "task", "evaluation tasks", "evaluation task", "eval tasks", "eval task", "benchmark", "benchmarks"),
)
_AND = PhraseBook(", and", ",", "and", "+", "&")
_TASKS_BEHIND = PhraseBook("tasks", "task", "benchmark", "benchmarks")
_NONE = PhraseBook("none", "null")
_TASK = re.compile(r"[a-z][a-z0-9]*(?:[_-][a-z0-9.]+)*")
# Tasks of the evaluation harness that people ask for; others are taken behind the word "tasks".
_KNOWN = re.compile(
    r"(?:mmlu|gsm8k|hellaswag|arc|winogrande|piqa|boolq|openbookqa|truthfulqa|lambada|ifeval|humaneval|mbpp|gpqa|bbh"
    r"|sciq|race|copa|rte|triviaqa|nq_open|squadv2|musr|aime|hendrycks_math|minerva_math|math_hard|commonsense_qa"
    r"|social_iqa|xnli|cmmlu|ceval|agieval|longbench|ruler|leaderboard)(?:[_-][a-z0-9]+)*"
)


def evaluation(cursor: Cursor, gathered: Gathered) -> bool:
    """ "full evaluation", "evaluation none", "evaluate on mmlu, gsm8k", "evaluate with 64 samples of wikitext"."""
    if cursor.takes(_SKIP_FLAG):
        cursor.takes(_IT)
        return gathered.choose("evaluation_intent", "none")
    start = cursor.at
    for clause in (_samples, _dataset, _tasks):
        if clause(cursor, gathered):
            return True
        cursor.at = start
    level = cursor.reads(_ADJECTIVE)
    if not cursor.takes(_EVALUATION):
        return False
    behind = cursor.at
    if not level:
        cursor.equals()
        level = cursor.reads(_LEVEL)
        if not level:
            cursor.at = behind
    if not level and (tasks := _several_tasks(cursor, known=True)):
        return gathered.choose("tasks", ",".join(tasks))
    data = cursor.sees(_ON)
    if data and not _on_what(cursor, gathered):
        return False
    return gathered.choose("evaluation_intent", _LEVELS[level]) if level else data


def takes_evaluation(cursor: Cursor) -> bool:
    """Read the word for it."""
    return cursor.takes(_EVALUATION)


def nothing_of(cursor: Cursor, gathered: Gathered) -> bool:
    """ "(no) evaluation tasks", behind a word that takes it away."""
    if cursor.takes(_TASKS):
        return gathered.choose("tasks", None)
    if cursor.takes(_SAMPLES):
        return gathered.choose("num_eval_data", None)
    return cursor.takes(_DATASET) and gathered.choose("evaluation_dataset", None)


def _on_what(cursor: Cursor, gathered: Gathered) -> bool:
    """ "on wikitext", "on mmlu and gsm8k", "with 64 samples of wikitext"."""
    cursor.takes(_ON)
    cursor.skips_article()
    count = values.count(cursor)
    if count is not None:
        if not cursor.takes(_SAMPLES_WORD):
            return False
        gathered.choose("num_eval_data", count)
        return not (cursor.takes(_OF) or cursor.takes(_ON)) or _data(cursor, gathered)
    return _data(cursor, gathered)


def _data(cursor: Cursor, gathered: Gathered) -> bool:
    tasks = _several_tasks(cursor, known=True)
    if tasks:
        cursor.takes(_TASKS_BEHIND)
        return gathered.choose("tasks", ",".join(tasks))
    name = names.dataset(cursor, used=True)
    return name is not None and gathered.choose("evaluation_dataset", name)


def _samples(cursor: Cursor, gathered: Gathered) -> bool:
    """ "num_eval_data 64", "64 evaluation samples"."""
    count = values.count(cursor)
    if count is not None:
        return cursor.takes(_COUNTED) and gathered.choose("num_eval_data", count)
    if not cursor.takes(_SAMPLES):
        return False
    count = values.new_number(cursor)
    if count is None:
        cursor.equals()
        count = values.count(cursor)
    return count is not None and gathered.choose("num_eval_data", count)


def _dataset(cursor: Cursor, gathered: Gathered) -> bool:
    """ "evaluation dataset wikitext"."""
    if not cursor.takes(_DATASET):
        return False
    cursor.equals()
    if cursor.takes(_NONE):
        return gathered.choose("evaluation_dataset", None)
    name = names.dataset(cursor, named=True)
    return name is not None and gathered.choose("evaluation_dataset", name)


def _tasks(cursor: Cursor, gathered: Gathered) -> bool:
    """ "tasks gsm8k", "evaluation tasks: mmlu, gsm8k"."""
    named = cursor.takes(_TASKS)
    if named:
        cursor.equals()
        if cursor.takes(_NONE):
            return gathered.choose("tasks", None)
    found = _several_tasks(cursor, known=not named)
    named = bool(found) and (cursor.takes(_TASKS_BEHIND) or named)
    return named and gathered.choose("tasks", ",".join(found))


def _several_tasks(cursor: Cursor, known: bool) -> list[str]:
    """Tasks with commas or "and" between them. What is no usual one is only taken first, behind the word for them."""
    found: list[str] = []
    behind = cursor.at
    while (task := _one_task(cursor, known or bool(found))) is not None:
        found.append(task)
        behind = cursor.at
        if not cursor.takes(_AND):
            break
    else:
        cursor.at = behind
    return list(dict.fromkeys(found))


def _one_task(cursor: Cursor, known: bool) -> str | None:
    token = cursor.token
    if token is None or token.kind not in (Kind.WORD, Kind.QUOTED):
        return None
    text = token.text.strip().lower()
    usual = _KNOWN.fullmatch(text) is not None
    telling = _TASK.fullmatch(text) is not None and (token.kind is Kind.QUOTED or re.search("[0-9_]", text) is not None)
    if not usual and (known or not telling or values.looks_like_scheme(token, cursor)):
        return None
    cursor.at += 1
    return text.replace("-", "_")
