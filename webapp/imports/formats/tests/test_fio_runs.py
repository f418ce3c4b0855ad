"""Runs of fio that were appended to one file, and the intervals of one run."""

import json
import re
from typing import Any

import pytest

from webapp.imports.formats import fio_json
from webapp.imports.formats.tests.examples import parsed, text

RUNS = "fio-json/3.33-runs.txt"  # three runs of 1 s, of which two have the same number of I/Os
STREAMS = "fio-json/3.33-runs-status-interval.txt"  # two runs with three objects each
STAGES = "fio-json/3.33-stonewall-status-interval.txt"  # three jobs, one after another

Object = dict[str, Any]


def objects(name: str) -> list[Object]:
    found = text(name)
    begins = [match.start() for match in re.finditer(r"^\{", found, re.MULTILINE)]
    return [json.JSONDecoder().raw_decode(found, begin)[0] for begin in begins]


def a_file(*parts: Object) -> str:
    return "".join(json.dumps(part, indent=2) + "\n" for part in parts)


def ios(file: str) -> list[int | None]:
    return [one.ios for one in fio_json.parse(file)]


def ios_of(part: Object) -> list[int]:
    """Of the jobs that have done I/O."""
    flows = [job[way] for job in part["jobs"] for way in ("read", "write") if way in job]
    return [flow["total_ios"] for flow in flows if flow["total_ios"]]


def test_each_appended_run_is_a_repeat() -> None:
    found = parsed(RUNS)
    parts = objects(RUNS)
    assert [[one.ios] for one in found] == [ios_of(part) for part in parts]
    assert [one.repeat for one in found] == [1, 2, 3]
    assert [one.measured_at.timestamp() for one in found if one.measured_at] == [
        part["timestamp_ms"] / 1000 for part in parts
    ]
    assert [one.notes[0] for one in found] == [f"The file has 3 runs of fio. This is run {n}." for n in (1, 2, 3)]


def test_of_each_appended_stream_the_last_object_counts() -> None:
    found = parsed(STREAMS)
    parts = objects(STREAMS)
    assert [[one.ios] for one in found] == [ios_of(parts[2]), ios_of(parts[5])]
    assert [one.notes[1] for one in found] == [
        "This run has 3 JSON objects, as with --status-interval: the last one counts."
    ] * 2


@pytest.mark.parametrize("name", [STAGES, "fio-json/3.33-status-interval.txt"])
def test_any_objects_of_one_stream_are_one_run(name: str) -> None:
    parts = objects(name)
    for step in (1, 2, 3):
        for begin in range(len(parts)):
            chosen = parts[begin::step]
            found = fio_json.parse(a_file(*chosen))
            assert not any("runs of fio" in note for one in found for note in one.notes)
            assert [one.ios for one in found] == ios_of(chosen[-1])


@pytest.mark.parametrize("name", [STAGES, "fio-json/3.33-status-interval.txt"])
def test_a_stream_without_time_is_one_run(name: str) -> None:
    parts = objects(name)
    for part in parts:
        part.pop("timestamp_ms")
        for job in part["jobs"]:
            job.pop("elapsed")
    assert ios(a_file(*parts)) == ios_of(parts[-1])


def a_minute_each(parts: list[Object]) -> list[Object]:
    """The runs as if each had taken a minute, with growing counters."""
    for number, part in enumerate(parts):
        part["timestamp_ms"] += 62_000 * number
        (job,) = part["jobs"]
        job |= {"elapsed": 61}
        job["read"] |= {"runtime": 60_000 + number, "io_bytes": 10**6 + number, "total_ios": 10**4 + number}
    return parts


def test_long_runs_are_told_apart_in_any_order() -> None:
    parts = a_minute_each(objects(RUNS))
    assert ios(a_file(*parts)) == [10_000, 10_001, 10_002]
    assert ios(a_file(*reversed(parts))) == [10_002, 10_001, 10_000]
    for part in parts:
        part["global options"]["ramp_time"] = "10"
    assert ios(a_file(*parts)) == [10_000, 10_001, 10_002]


def test_a_clock_that_is_set_during_a_run_does_not_split_it() -> None:
    before, after, _ = a_minute_each(objects(RUNS))
    after["timestamp_ms"] = before["timestamp_ms"] + 11_000  # 10 s later than the interval
    after["jobs"][0]["elapsed"] += 1
    assert ios(a_file(before, after)) == [10_001]


def test_runs_of_fio_2_which_states_whole_seconds_are_told_apart() -> None:
    parts = objects(RUNS)
    for part in parts:
        part.pop("timestamp_ms")
        part["timestamp"] *= 2  # a pause of some seconds between them
        for job in part["jobs"]:
            job.pop("elapsed")
    assert [[one] for one in ios(a_file(*parts))] == [ios_of(part) for part in parts]


def test_counters_that_are_reset_after_the_ramp_are_of_one_run() -> None:
    before, after = objects(STAGES)[:2]
    for part in (before, after):
        part["global options"]["ramp_time"] = "1"
    before["jobs"][0]["read"] |= {"runtime": 5000, "io_bytes": 10**9, "total_ios": 10**5}
    assert ios(a_file(before, after)) == ios_of(after)
    for part in (before, after):
        part["global options"].pop("ramp_time")
    assert len(ios(a_file(before, after))) == 2


def test_other_jobs_are_another_run() -> None:
    before, after = objects(STAGES)[0], objects(STAGES)[-1]
    before["jobs"][0]["job options"]["iodepth"] = "4"
    assert ios(a_file(before, after)) == [*ios_of(before), *ios_of(after)]


def test_results_of_other_programs_between_the_runs_are_skipped() -> None:
    first, second, third = objects(RUNS)
    file = f"fio: a warning\n{a_file(first)}{a_file({'temperature': 40})}{a_file(second)}end\n{a_file(third)}"
    assert len(ios(file)) == 3


def test_a_damaged_object_is_named_and_the_other_runs_count() -> None:
    first, second, third = objects(RUNS)
    whole = a_file(second)
    found = fio_json.parse(a_file(first) + whole[: len(whole) // 2] + "\n" + a_file(third))
    assert [[one.ios] for one in found] == [ios_of(first), ios_of(third)]
    assert "cut off or damaged" in found[0].notes[1]
    assert not any("cut off" in note for note in found[1].notes)
