"""Damaged examples: only ImportRefused may come out of a parser, and soon."""

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webapp.imports import formats
from webapp.imports.formats import FORMATS
from webapp.imports.formats.fio_log import HistogramSum, Kind, Log, series
from webapp.imports.formats.tests.examples import DATA, EXAMPLES, IDS
from webapp.imports.measurement import Measurement
from webapp.imports.values import ImportRefused

MOST_SECONDS = 2.0
_TOKENS = [
    "",
    "nan",
    "-1",
    "inf",
    "1e400",
    "1e300",
    "1e-300",
    "9" * 30,
    "9" * 6000,
    "\0",
    "٣",
    "\ud800",
    '"',
    "{",
    "[[",
    "\n",
    ",",
    "%",
]


@st.composite
def _damaged(draw: st.DrawFn, original: str) -> str:
    """Some cuts, repetitions and replacements."""
    found = original
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(found)))
        end = min(len(found), begin + draw(st.integers(0, 200)))
        kind = draw(st.sampled_from(["cut", "drop", "token", "swap", "repeat", "text"]))
        if kind == "cut":
            found = found[:begin]
        elif kind == "drop":
            found = found[:begin] + found[end:]
        elif kind == "token":
            found = found[:begin] + draw(st.sampled_from(_TOKENS)) + found[min(end, begin + 3) :]
        elif kind == "swap":
            found = found[:begin] + found[begin:end][::-1] + found[end:]
        elif kind == "repeat":
            found = found[:end] + found[begin:end] * draw(st.integers(1, 20)) + found[end:]
        else:
            found = found[:begin] + draw(st.text(max_size=20)) + found[end:]
    return found


def _has_value(one: Measurement) -> bool:
    rates, latency = (one.iops, one.bytes_per_s), one.latency
    if not one.is_io:
        return bool(one.metrics)
    return bool(latency.percentiles) or any(value is not None for value in (*rates, latency.mean_ns, latency.max_ns))


def _parse(name: str, text: str) -> None:
    began = time.process_time()
    found: list[Measurement] = []
    reason = "None."
    try:
        found = FORMATS[name].parse(text)
    except ImportRefused as refusal:
        reason = refusal.message
    assert reason.endswith(".")
    assert len(reason) < 600
    assert all(_has_value(m) for m in found)
    FORMATS[name].sniff(text[: formats.HEAD_CHARACTERS])
    assert time.process_time() - began < MOST_SECONDS


@pytest.mark.parametrize("path", EXAMPLES, ids=IDS)
@settings(deadline=None, max_examples=settings().max_examples // 5)  # of each of 80 files: 20, with `make fuzz` 400
@given(data=st.data())
def test_a_damaged_example(path: Path, data: st.DataObject) -> None:
    _parse(path.parent.name, data.draw(_damaged(path.read_text())))


@pytest.mark.parametrize("name", FORMATS)
@settings(deadline=None, max_examples=30)
@given(other=st.sampled_from(EXAMPLES))
def test_the_file_of_another_format(name: str, other: Path) -> None:
    _parse(name, other.read_text())


_HOSTILE = {
    "empty": "",
    "spaces": " " * 100_000,
    "long line": "a" * 5_000_000,
    "long line of digits": "1" * 5_000_000,
    "long line of cells": "Block |" + " 1 thread |" * 200_000,
    "many lines": "1 2 3\n" * 100_000,
    "too many lines": "1\n" * 600_000,
    "nested": "[" * 1_000_000,
    "nested objects": '{"fio version":' * 200_000,
    "semicolons": "3;" + ";" * 50_000,
    "commas": "," * 90_000,
    "quotes": '"' * 90_001,
    "binary": "".join(map(chr, range(256))) * 100,
}


@pytest.mark.parametrize("text", _HOSTILE.values(), ids=_HOSTILE.keys())
def test_hostile_texts_are_refused(text: str) -> None:
    seconds = {}
    for name, form in FORMATS.items():
        began = time.process_time()
        with pytest.raises(ImportRefused):
            print(name, form.parse(text))
        form.sniff(text[: formats.HEAD_CHARACTERS])
        seconds[name] = time.process_time() - began
    assert {name: each for name, each in seconds.items() if each >= MOST_SECONDS} == {}


@settings(deadline=None, max_examples=200)
@given(data=st.data(), kind=st.sampled_from([Kind.IOPS, Kind.LATENCY, Kind.BANDWIDTH]))
def test_damaged_logs(data: st.DataObject, kind: Kind) -> None:
    original = (DATA / "fio-log" / "randwrite-iodepth-32-numjobs-4_lat.1.log").read_text()
    text = data.draw(_damaged(original))
    began = time.process_time()
    try:
        series([Log(kind, 1, text), Log(Kind.IOPS, 1, original)])
        found = HistogramSum()
        found.add(text)
        found.histograms()
    except ImportRefused:
        pass
    assert time.process_time() - began < MOST_SECONDS
