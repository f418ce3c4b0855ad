"""A plan that the host cannot run is not tried, and has not passed."""

import pytest

from dev.presets.runs import Report, is_lack


@pytest.mark.parametrize(
    ("code", "reason", "lacks"),
    [
        ("capability_missing", "Not supported by the host: a: layouts with md.", True),
        ("setting_refused", "irq_affinity: loop4 is not behind a PCI controller.", True),
        ("setting_refused", "nr_requests of loop0 was not set to '256': Invalid argument.", False),
        ("plan_problem", "4 GiB are needed on a/file, 1 GiB are there.", False),
    ],
)
def test_it_separates_what_a_host_lacks_from_problems(code: str, reason: str, lacks: bool) -> None:
    assert is_lack(code, reason) is lacks


@pytest.mark.parametrize(
    ("done", "lacking", "problems", "verdict"),
    [
        (4, (), (), "✓"),
        (3, ("1 × no poll queues",), (), "in part"),
        (0, ("layouts with md",), (), "not tried"),
        (3, (), ("1 × fio failed",), "✗"),
        (0, (), (), "not tried"),
    ],
)
def test_only_a_plan_whose_trials_are_all_done_has_passed(
    done: int, lacking: tuple[str, ...], problems: tuple[str, ...], verdict: str
) -> None:
    made = Report("p", ("drive0",), trials=4 if done else 0, done=done, lacking=lacking, problems=problems)
    assert made.verdict == verdict
