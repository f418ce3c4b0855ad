import json
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings

from webapp.core import formatting
from worker.client import output
from worker.contract.packing import BEYOND

VECTORS = json.loads((Path(settings.BASE_DIR) / "frontend/tests/vectors/format.json").read_text())
FORMATTERS: dict[str, Callable[[float], str]] = {
    "significant": formatting.significant,
    "iops": formatting.iops,
    "bytes": formatting.bytes_decimal,
    "bytesPerSecond": formatting.bytes_per_s,
    "binaryBytes": formatting.bytes_binary,
    "latency": formatting.latency,
    "duration": formatting.duration,
    "ratio": formatting.ratio,
    "percent": formatting.percent,
}


@pytest.mark.parametrize("name", VECTORS)
def test_it_says_what_the_script_side_says(name: str) -> None:
    examples = [tuple(example) for example in VECTORS[name]]
    assert [(value, FORMATTERS[name](value)) for value, _ in examples] == examples


@pytest.mark.parametrize(("name", "unit"), [("iops", "1/s"), ("bytesPerSecond", "B/s"), ("latency", "ns")])
def test_the_command_says_it_too(name: str, unit: str) -> None:
    examples = [(value, text) for value, text in VECTORS[name] if text != BEYOND]
    assert [(value, output.value(unit, value)) for value, _ in examples] == examples


@pytest.mark.parametrize(
    ("value_s", "text"),
    [(0, "≈ 0 s"), (59.9, "≈ 59 s"), (60, "≈ 1 min"), (122, "≈ 2 min"), (3599, "≈ 1 h 00 min"), (90_000, "≈ 1 d 1 h")],
)
def test_an_estimate_of_minutes_has_no_seconds(value_s: float, text: str) -> None:
    assert formatting.estimated_duration(value_s) == text
