"""A plan that the host cannot run is not tried, and has not passed."""

import pytest

from dev.presets.runs import Report


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
