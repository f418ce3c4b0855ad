import pytest

from worker.contract.workload import Confidence, Settled, SteadyRounds, StopRule
from worker.recipes.base import parse_stop_rule, write_stop_rule


@pytest.mark.parametrize(
    ("text", "rule", "written"),
    [
        ("confidence 2%", Confidence(percent=2), "confidence 2%"),
        (" Confidence 0.5 % ", Confidence(percent=0.5), "confidence 0.5%"),
        ("settled 1min", Settled(hold_s=60), "settled 60s"),
        ("snia 60s", SteadyRounds(round_s=60), "snia 60s"),
    ],
)
def test_a_rule_is_read_and_written(text: str, rule: StopRule, written: str) -> None:
    assert parse_stop_rule(text) == rule
    assert write_stop_rule(rule) == written
    assert parse_stop_rule(written) == rule


@pytest.mark.parametrize(
    "text",
    [
        "", "confidence", "confidence 2", "confidence 2s", "confidence 0%", "confidence 99%", "settled 5s", "snia 2%",
        "snia 1.5s", "steady 60s", "settled 60",
    ],
)  # fmt: skip
def test_other_text_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="write it like `confidence 2%`, `settled 60s` or `snia 60s`"):
        parse_stop_rule(text)
