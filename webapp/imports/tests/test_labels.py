import time

import msgspec
import pytest

from webapp.imports.labels import apply, match, suggest
from webapp.imports.measurement import Measurement
from webapp.imports.values import ImportRefused
from webapp.plans.values import Value
from worker.contract.items import Direction

PATTERN = "{host}/{controller}/{drive}/{rw}-{iodepth}-{numjobs}.json"
PATH = "results/2020/server/IBM_M1015/KINGSTON-DC500M/randread-32-4.json"


def _measured(**factors: Value) -> Measurement:
    return Measurement(tool="fio", direction=Direction.READ, factors=factors, iops=1.0)


def test_a_pattern_is_matched_from_the_end() -> None:
    assert match(PATTERN, PATH) == {
        "host": "server",
        "controller": "IBM_M1015",
        "drive": "KINGSTON-DC500M",
        "rw": "randread",
        "iodepth": "32",
        "numjobs": "4",
    }


@pytest.mark.parametrize(
    ("pattern", "path", "labels"),
    [
        ("{rw}.json", "a/write.json", {"rw": "write"}),
        ("{rw}.json", "a/write.txt", None),
        ("{a}-{b}.txt", "x-y-z.txt", {"a": "x-y", "b": "z"}),
        ("{host}/*/{rw}.json", "h/anything/read.json", {"host": "h", "rw": "read"}),
        ("{host}/**/{rw}.json", "h/a/b/read.json", {"host": "b", "rw": "read"}),
        ("{host}/results/**/{rw}.json", "h/results/b/read.json", {"host": "h", "rw": "read"}),
        ("{drive}[-run{run}].json", "d1-run3.json", {"drive": "d1", "run": "3"}),
        ("{drive}[-run{run}].json", "d1.json", {"drive": "d1"}),
        ("*-{n}.json", "a-b-7.json", {"n": "7"}),
        ("{a}/{b}", "only", None),
        ("{a}/{a}", "x/y", {"a": "y"}),
        ("{a}-.json", "-.json", None),
    ],
)
def test_patterns(pattern: str, path: str, labels: dict[str, str] | None) -> None:
    assert match(pattern, path) == labels


def test_a_log_of_fio_plot() -> None:
    pattern = "{drive}/{rw}-iodepth-{iodepth}-numjobs-{numjobs}_{kind}.{job}.log"
    found = match(pattern, "x/D1/randwrite-iodepth-32-numjobs-4_bw.3.log")
    assert found == {"drive": "D1", "rw": "randwrite", "iodepth": "32", "numjobs": "4", "kind": "bw", "job": "3"}


@pytest.mark.parametrize(
    "pattern",
    ["{Host}", "{a", "[a", "{a}]", "[[a]]" * 5, "x" * 400, "{}", "**/**/**/a", "{a}{b}", "{a}*", "*{a}", "{a}[{b}]"],
)
def test_a_wrong_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ImportRefused, match="pattern"):
        match(pattern, "a/b.json")


def test_a_long_path_takes_no_time() -> None:
    assert match("{a}-{b}-{c}-{d}-{e}-{f}x", "-" * 100_000) is None
    assert match("q/" + "*/" * 20 + "**/" + "*/" * 20 + "**/*", "/".join("abc" * 100)) is None


def test_no_place_of_a_pattern_is_tried_twice() -> None:
    """Two `**`, four optional parts and sixty equal folders had thousands of ways to fail."""
    path = "/".join("a" * 64)
    started_s = time.process_time()
    for _ in range(200):
        assert match("x/**/a[a]/**/a[b][c][d]", path) is None
    assert time.process_time() - started_s < 10


@pytest.mark.parametrize(
    ("pattern", "labels"),
    [
        ("{a}/**/f", {"a": "d"}),
        ("{a}/**/d/f", {"a": "c"}),
        ("a/{x}/**/d/f", {"x": "b"}),
        ("{x}/b/**/{y}/**", {"x": "a", "y": "f"}),
        ("**/{x}/**/f", {"x": "d"}),
        ("b/**/b/**/f", None),
    ],
)
def test_any_number_of_folders_is_as_few_as_possible(pattern: str, labels: dict[str, str] | None) -> None:
    assert match(pattern, "a/b/c/d/f") == labels


def test_the_file_counts_and_the_path_adds() -> None:
    labelled = apply({"rw": "randread", "iodepth": "16", "numjobs": "4", "host": "h1"}, _measured(iodepth=32))
    assert labelled.labels == {"host": "h1"}
    assert labelled.measurement.factors == {"iodepth": 32, "pattern": "randread", "numjobs": 4}
    assert labelled.measurement.notes == (
        "Pattern is randread according to the path.",
        "Queue depth is 32 in the file and 16 in the path: the file counts.",
        "Jobs is 4 according to the path.",
    )


def test_agreement_needs_no_note() -> None:
    measured = _measured(iodepth=32)
    assert apply({"iodepth": "32"}, measured).measurement is measured


def test_invalid_values_are_ignored_with_a_note() -> None:
    labelled = apply({"iodepth": "many"}, _measured())
    assert labelled.measurement.factors == {}
    assert "not a valid value" in labelled.measurement.notes[0]


def test_suggestions() -> None:
    assert suggest([PATH, PATH.replace("-32-", "-1-")]) == PATTERN
    assert suggest(["drive/randwrite-4k.json"]) == "{drive}/{rw}-{bs}.json"
    assert suggest(["randread-4k-32-1.json"]) == "{rw}-{bs}-{iodepth}-{numjobs}.json"
    assert suggest(["a/notes.txt", "b/photo.jpg"]) == ""
    assert suggest([]) == ""


def test_a_folder_named_after_a_block_size_is_no_drive() -> None:
    """As bench-fio names it."""
    paths = [f"PM9A3/{size}/randread-{depth}-4.json" for size in ("4k", "128k", "1m") for depth in (1, 32)]
    assert suggest(paths) == "{drive}/{bs}/{rw}-{iodepth}-{numjobs}.json"
    assert suggest([f"lab1/{path}" for path in paths]) == "{host}/{drive}/{bs}/{rw}-{iodepth}-{numjobs}.json"


def test_a_default_that_the_file_does_not_state_is_no_objection_to_a_label() -> None:
    measured = msgspec.structs.replace(_measured(numjobs=1, iodepth=1), assumed=frozenset({"numjobs"}))
    labelled = apply({"numjobs": "8", "iodepth": "8"}, measured).measurement
    assert labelled.factors == {"numjobs": 8, "iodepth": 1}
    assert [note.split(" is ")[0] for note in labelled.notes] == ["Jobs", "Queue depth"]
