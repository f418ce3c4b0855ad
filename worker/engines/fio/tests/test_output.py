"""The parser finds every dump, however the output is cut and whatever stands before it."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.engines.fio import output
from worker.engines.fio.output import BadOutput, OutputReader


def dump(number: int) -> str:
    job = {"error": 0, "read": {"io_bytes": number, "lat_ns": {"N": 1, "bins": {"512": 1}}}, "name": "}\n{"}
    return json.dumps({"fio version": "fio-3.33", "timestamp_ms": number, "jobs": [job]}, indent=2) + "\n"


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(p % (len(data) + 1) for p in places), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


garbage = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n")).map(lambda t: t + "\n"), max_size=3)


@given(st.lists(garbage, min_size=1, max_size=5), st.lists(st.integers(0, 5000), max_size=60))
def test_it_finds_every_dump_in_any_cut(between: list[list[str]], places: list[int]) -> None:
    text = "".join("".join(words) + dump(number) for number, words in enumerate(between))
    reader = OutputReader()
    found = [d.timestamp_ms for part in cut(text.encode(), places) for d in reader.feed(part)]
    assert [n for n in found if n < len(between)] == list(range(len(between)))


@given(st.binary(max_size=3000), st.lists(st.integers(0, 5000), max_size=20))
def test_it_survives_anything(data: bytes, places: list[int]) -> None:
    reader = OutputReader()
    for part in cut(data + b"\n" + dump(7).encode(), places):
        reader.feed(part)
    assert len(reader.text) <= output.TEXT_KEPT


def test_it_keeps_the_words_that_are_not_json() -> None:
    reader = OutputReader()
    assert len(reader.feed(f"fio: terminating on signal 2\n\n{dump(1)}".encode())) == 1
    assert "signal 2" in reader.text


def test_it_takes_braces_in_words_for_words() -> None:
    reader = OutputReader()
    assert [d.timestamp_ms for d in reader.feed(f"{{\nnot json\n}}\n{dump(3)}".encode())] == [3]


def test_it_takes_a_number_that_is_none_for_zero() -> None:
    text = dump(4).replace('"io_bytes": 4', '"usr": -nan, "io_bytes": 4')
    assert OutputReader().feed(text.encode())[0].jobs[0].read.io_bytes == 4


def test_it_bounds_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "MAX_DUMP_BYTES", 10_000)
    reader = OutputReader()
    reader.feed(b"x" * 100_000)
    with pytest.raises(BadOutput):
        reader.feed(b"\n{\n" + b" 1,\n" * 5_000)
