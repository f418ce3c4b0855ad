import re
from pathlib import Path

import pytest

from webapp.imports import formats
from webapp.imports.formats import fio_log
from webapp.imports.formats.tests.examples import DATA, EXAMPLES, IDS
from webapp.imports.values import ImportRefused


@pytest.mark.parametrize("path", EXAMPLES, ids=IDS)
def test_each_example_is_recognised_by_its_content(path: Path) -> None:
    assert formats.recognised(path.read_text()) == path.parent.name
    assert formats.parse(path.read_text())[1]


def test_all_tools_of_a_log_are_read_or_named() -> None:
    log = "\n".join(
        (DATA / name).read_text() for name in ("hdparm/9.65.txt", "dd/gnu-9.txt", "fio-text/3.33-group.txt")
    )
    parsed = formats.parse(f"\x1b[33mRunning tests\x1b(B\x1b[m\n{log}")
    assert parsed.format == "fio-text + hdparm + dd"
    assert {one.tool for one in parsed.measured} == {"fio", "hdparm", "dd"}
    assert parsed.notes == ()
    without_command = formats.parse(re.sub(r".*dd .*", "", log))
    assert {one.tool for one in without_command.measured} == {"fio", "hdparm"}
    assert [note.split(".")[0] for note in without_command.notes] == ["Not read: dd"]
    phoronix = formats.parse(log + "<PhoronixTestSuite>\n")
    assert phoronix.notes == ("Not read: Phoronix Test Suite.",)


def test_windows_line_ends() -> None:
    for path in EXAMPLES:
        text = path.read_text()
        assert len(formats.parse(text.replace("\n", "\r\n"))[1]) == len(formats.parse(text)[1]), path


@pytest.mark.parametrize("field", ["total_ios", "runtime", "io_bytes", "mean", "stddev", "usr_cpu", "99.000000"])
@pytest.mark.parametrize("number", ["1" + "0" * 400, "1e308"])
def test_a_number_beyond_the_range_of_a_float_is_refused(field: str, number: str) -> None:
    text = (DATA / "fio-json" / "3.33-runs.txt").read_text()
    changed = re.sub(rf'"{field}": [\d.]+', f'"{field}": {number}', text)
    assert changed != text
    with pytest.raises(ImportRefused):
        formats.parse(changed)


def test_percentiles_without_a_number_are_skipped() -> None:
    text = (DATA / "fio-json" / "3.33-client.json").read_text()
    (one, *_) = formats.parse(text.replace('"99.000000"', '"NaN"').replace('"99.900000"', '"inf"'))[1]
    assert {99.0, 99.9}.isdisjoint(one.latency.percentiles)
    assert 50.0 in one.latency.percentiles


@pytest.mark.parametrize("name", ["xdd/tables.txt", "iozone/automatic.txt", "ezfio/1.0.csv"])
def test_a_file_that_is_cut_inside_its_last_number_has_a_note(name: str) -> None:
    text = (DATA / name).read_text().rstrip()
    whole, cut = formats.parse(text + "\n")[1], formats.parse(text[:-1])[1]
    assert not any(formats.NO_END in one.notes for one in whole)
    assert [formats.NO_END in one.notes for one in cut] == [False] * (len(whole) - 1) + [True]


@pytest.mark.parametrize("text", ["", "hello\n", "{}", "a,b,c\n1,2,3\n", "250, 10872, 0, 0\n"])
def test_other_files_are_not_recognised(text: str) -> None:
    assert formats.recognised(text) == ""
    with pytest.raises(ImportRefused, match="not known"):
        formats.parse(text)


def test_no_pattern_tries_every_line_break_again() -> None:
    """With MULTILINE, a text of line breaks takes `^\\s*` or `\\s*$` time that grows with the square of its length."""
    for source in Path(fio_log.__file__).parent.glob("*.py"):
        slow = [
            line
            for line in source.read_text().splitlines()
            if "MULTILINE" in line and re.search(r"\^\\s|\\s[*+]\$", line)
        ]
        assert not slow, source
