"""What squeue lists, read into the jobs of this program."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runner.engines.slurm.job import Asked, Job, new_token, read_jobs

TOKEN = "0123456789abcdef" * 2


def line(
    number: object = 42,
    state: str = "PENDING",
    submitted: str = "2026-03-02T12:00:00",
    reason: str = "Resources",
    comment: str = f"ptq:{TOKEN}",
) -> str:
    return f"{number}|{state}|{submitted}|{reason}|{comment}"


def test_a_job_is_known_by_its_comment() -> None:
    jobs = read_jobs([line(), line(43, comment="somebody else's"), line(44, comment="(null)")])
    assert jobs == {TOKEN: Job(42, "PENDING", "2026-03-02T12:00:00", "Resources", TOKEN)}
    assert jobs[TOKEN].waits
    assert jobs[TOKEN].why == "pending (Resources)"


def test_a_comment_that_only_looks_like_ours_is_none() -> None:
    for comment in (f"ptq:{TOKEN}0", f"ptq:{TOKEN[:-1]}", f"x|ptq:{TOKEN}", f"ptq:{TOKEN}|x", TOKEN, ""):
        assert read_jobs([line(comment=comment)]) == {}, comment


def test_of_two_jobs_with_one_comment_the_latter_counts() -> None:
    older, newer = line(50, submitted="2026-03-02T12:00:00"), line(7, submitted="2026-03-02T13:00:00")
    for lines in ([older, newer], [newer, older]):
        assert read_jobs(lines)[TOKEN].number == 7


def test_what_is_no_job_is_left_out() -> None:
    assert read_jobs(["", "|||", "42", line("42_1"), line("x"), line("٤٢"), "slurm_load_jobs error|a|b|c|d"]) == {}


def test_a_job_waits_works_or_has_ended() -> None:
    states = {
        "PENDING": "waits",
        "CONFIGURING": "at_work",
        "RUNNING": "at_work",
        "COMPLETING": "at_work",
        "SUSPENDED": "at_work",
        "COMPLETED": "ended",
        "FAILED": "ended",
        "CANCELLED": "ended",
        "NODE_FAIL": "ended",
        "BOOT_FAIL": "ended",
        "OUT_OF_MEMORY": "ended",
        "TIMEOUT": "ended",
    }
    for state, told in states.items():
        job = read_jobs([line(state=state)])[TOKEN]
        assert [name for name in ("waits", "at_work", "ended") if getattr(job, name)] == [told], state


@given(st.lists(st.text(max_size=80), max_size=10))
def test_whatever_is_listed_is_read(lines: list[str]) -> None:
    assert all(isinstance(job, Job) for job in read_jobs(lines).values())


def test_every_job_has_a_token_of_its_own() -> None:
    asked = [Asked(token=new_token(), at=0.0) for _ in range(3)]
    assert len({one.comment for one in asked}) == 3
    assert asked[0].name == "Its Slurm job"
    assert asked[0].model_copy(update={"number": 42}).name == "Slurm job 42"
