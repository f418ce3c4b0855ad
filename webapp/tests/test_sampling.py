import pytest

from dev.testing.pytest_plugin import SAMPLE_SEED_VARIABLE
from webapp.tests.sampling import part_of


@pytest.mark.parametrize("seed", ["0", "4", "999"])
def test_each_case_is_in_one_part_with_any_seed(monkeypatch: pytest.MonkeyPatch, seed: str) -> None:
    monkeypatch.setenv(SAMPLE_SEED_VARIABLE, seed)
    cases = list(range(17))
    parts = [part_of(cases, number, 6) for number in range(6)]
    assert sorted(case for part in parts for case in part) == cases


def test_another_seed_takes_another_part(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    for seed in range(6):
        monkeypatch.setenv(SAMPLE_SEED_VARIABLE, str(seed))
        taken += part_of(range(17), 0, 6)
    assert sorted(taken) == list(range(17))
