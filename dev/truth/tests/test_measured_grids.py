"""A replay on a small grid of known values, and what a grid needs."""

import json
from pathlib import Path

import pytest

from dev.console import ToolError
from dev.truth.measured_grids import FOLDER, GOALS, Outcome, read_grid, replayed
from webapp.plans.goal import read_goal

GOAL = "highest iops where latency_mean <= 1ms"
LATENCY_NS = {1: 100_000, 2: 300_000, 4: 900_000, 8: 2_000_000}


def rows(repeats: int = 2) -> list[dict[str, object]]:
    return [
        {
            "point": {"pattern": "randread", "iodepth": depth, "direct": direct},
            "repeat": repeat,
            "iops": 1000.0 * depth * (2 if direct else 1) * (1 + 0.001 * repeat),
            "latency_mean_ns": latency_ns,
        }
        for depth, latency_ns in LATENCY_NS.items()
        for direct in (False, True)
        for repeat in range(repeats)
    ]


def written(tmp_path: Path, content: list[dict[str, object]]) -> Path:
    path = tmp_path / "grid.json"
    path.write_text(json.dumps(content))
    return path


def test_a_replay_is_compared_with_the_best_combination_of_the_grid(tmp_path: Path) -> None:
    grid = read_grid(written(tmp_path, rows()), read_goal(GOAL))
    assert grid.space.levels == {"iodepth": (1, 2, 4, 8), "direct": (False, True)}
    assert (len(grid.values), grid.budget) == (8, 80)
    assert grid.noise == pytest.approx(0.001 / 2**0.5, rel=0.01)
    outcome = replayed(grid, seed=1)
    assert outcome.share == pytest.approx(1, abs=0.001)  # depth 4: depth 8 is beyond the limit
    assert outcome.excess == pytest.approx(-0.1)
    assert outcome.is_sure
    assert outcome.bound_error == 0


def test_a_bound_below_what_beats_the_answer_has_an_error() -> None:
    assert Outcome(0.8, 0.1, 0.0, is_sure=True).bound_error == pytest.approx(0.15)


def test_a_grid_needs_repeats(tmp_path: Path) -> None:
    with pytest.raises(ToolError):
        read_grid(written(tmp_path, rows(repeats=1)), read_goal(GOAL))


def test_the_recorded_grids_can_be_read() -> None:
    for name, goal in GOALS:
        assert len(read_grid(FOLDER / f"{name}.json", read_goal(goal)).values) >= 96
