"""Damaged data files are refused with their file and line."""

from pathlib import Path

import pytest

from webapp.imports.references.about import ReferenceDamaged
from webapp.imports.references.reading import references

ABOUT = """\
title = "One drive"
source = "A. Author, “A page”"
date = "2010-03"

[factors]
scheduler = "none"

[labels]
host = "server"

[[files]]
name = "figures.csv"
table = "Figures"
tool = "a tool"
[files.factors]
block_size = "4k"

[[files]]
name = "bm-flash.txt"
[files.labels]
firmware = "1.0"
"""
TABLE = """\
pattern,drive,mib_per_s,latency_p95_ms,metric power_watt,note
randread,D1,100.5,0.5,,
randwrite,D1,50,,9.5,"A note."
"""
BM_FLASH = """\
Read Tests:
Block |   1 thread
 Size |  IOPS    BW
 512B |  8695    4.2M
   1K |  7712    7.5M
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    folder = tmp_path / "one"
    folder.mkdir()
    (folder / "reference.toml").write_text(ABOUT)
    (folder / "figures.csv").write_text(TABLE)
    (folder / "bm-flash.txt").write_text(BM_FLASH)
    return tmp_path


def _replace(library: Path, file: str, old: str, new: str) -> None:
    path = library / "one" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))


def test_an_undamaged_library_is_read(library: Path) -> None:
    (reference,) = references(library)
    assert (reference.slug, reference.title, reference.date) == ("one", "One drive", "2010-03")
    read, write, *flash = reference.entries
    assert read.path == "Figures"
    assert read.labels == {"host": "server", "drive": "D1"}
    assert read.measurement.factors == {"scheduler": "none", "block_size": 4096, "pattern": "randread"}
    assert read.measurement.latency.percentiles == {95: 500_000}
    assert write.measurement.metrics == {"power_watt": 9.5}
    assert write.measurement.notes == ("A note.",)
    assert [one.path for one in flash] == ["bm-flash.txt"] * 2
    assert flash[0].labels == {"host": "server", "firmware": "1.0"}
    assert flash[0].measurement.factors["block_size"] == 512


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ('source = "A. Author, “A page”"\n', "", 1, "missing required field `source`"),
        ('source = "A. Author, “A page”"', 'source = " "', 2, "source is empty"),
        ('date = "2010-03"', 'date = "March"', 3, "The date `March`"),
        ('date = "2010-03"', "date = 2010", 3, "Expected `str`, got `int`"),
        ('title = "One drive"', 'title = "One', 1, "Illegal character"),
        ('title = "One drive"', 'titel = "One drive"', 1, "unknown field `titel`|missing required field `title`"),
        ('scheduler = "none"', 'schedular = "none"', 6, "`schedular` is not a factor of a reference. Use `scheduler`."),
        ('scheduler = "none"', 'scheduler = "two words"', 6, "is not understood"),
        ('host = "server"', 'scheduler = "none"', 9, "`scheduler` is a factor or a result, not a label."),
        ('host = "server"', 'host = ""', 9, "The label host is empty"),
        ('host = "server"', 'table = "T1"', 9, "`table` is not a label"),
        ('name = "bm-flash.txt"', 'name = "figures.csv"\ntool = "a tool"', 19, "named twice"),
        ('host = "server"', "host = 5", 8, "Expected `str`, got `int`"),
        ('name = "figures.csv"', 'name = "numbers.csv"', 12, "no file `numbers.csv`"),
        ('name = "figures.csv"', 'name = "../one/figures.csv"', 12, "no file"),
        ('tool = "a tool"\n', "", 11, "needs a tool"),
        ('tool = "a tool"', 'toool = "a tool"', 14, "unknown field `toool`"),
        ('block_size = "4k"', 'block_size = "0"', 16, "Block size"),
        ('block_size = "4k"', 'layout = "single"', 16, "`layout` is not a factor"),
        ('firmware = "1.0"', 'iops = "1.0"', 21, "`iops` is a factor or a result"),
        ('[[files]]\nname = "bm-flash.txt"\n[files.labels]\nfirmware = "1.0"\n', "", 1, "names `bm-flash.txt`"),
    ],
)
def test_a_damaged_head_is_refused(library: Path, old: str, new: str, line: int, reason: str) -> None:
    _replace(library, "reference.toml", old, new)
    with pytest.raises(ReferenceDamaged, match=rf"^one/reference.toml, line {line}: .*({reason})"):
        references(library)


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("100.5", "-100.5", 2, "not a number, or is negative"),
        ("100.5", "1e12", 2, "not possible"),
        ("100.5", "nan", 2, "not a number"),
        ("randread,", "randomread,", 2, "Pattern"),
        ("randread,", ",", 2, "direction or the pattern"),
        (",50,,9.5,", ",,,,", 3, "no figure"),
        (",50,,9.5,", ",50,9.5,", 3, "5 fields and its head 6"),
        (",50,,9.5,", ",50,,9.5 W,", 3, "metric power_watt"),
        ("latency_p95_ms", "Latency_p95", 1, "`Latency_p95` is not a label"),
        ("drive", "pattern", 1, "same name"),
        ('"A note."', '"A note.', 3, "not valid CSV"),
    ],
)
def test_a_damaged_table_is_refused(library: Path, old: str, new: str, line: int, reason: str) -> None:
    _replace(library, "figures.csv", old, new)
    with pytest.raises(ReferenceDamaged, match=rf"^one/figures.csv, line {line}: .*{reason}"):
        references(library)


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("7712    7.5M", "7712    7.5", 5, "not a pair"),
        ("8695    4.2M", "88888888888 4.2M", 4, "not possible"),
        ("   1K |  7712", "   1K |  1 | 7712", 5, "more columns|not a pair"),
    ],
)
def test_a_damaged_output_of_a_tool_is_refused(library: Path, old: str, new: str, line: int, reason: str) -> None:
    _replace(library, "bm-flash.txt", old, new)
    with pytest.raises(ReferenceDamaged, match=rf"^one/bm-flash.txt, line {line}: .*({reason})"):
        references(library)


def test_a_factor_that_a_tool_states_differently_is_refused(library: Path) -> None:
    _replace(library, "reference.toml", '[files.labels]\nfirmware = "1.0"', '[files.factors]\nnumjobs = "2"')
    message = r"^one/reference.toml, line 21: `bm-flash.txt` states another value of numjobs"
    with pytest.raises(ReferenceDamaged, match=message):
        references(library)


def test_a_folder_without_a_head_is_refused(library: Path) -> None:
    (library / "one" / "reference.toml").unlink()
    with pytest.raises(ReferenceDamaged, match=r"^one/reference.toml, line 1: The file is missing"):
        references(library)


def test_a_text_that_is_not_utf_8_is_refused(library: Path) -> None:
    path = library / "one" / "figures.csv"
    path.write_bytes(path.read_bytes().replace(b"A note", b"A n\xf6te"))
    with pytest.raises(ReferenceDamaged, match=r"^one/figures.csv, line 3: The text is not UTF-8"):
        references(library)
