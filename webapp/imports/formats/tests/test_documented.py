"""The tables of formats and of example files in the documents, against the registry and the files."""

import re
from pathlib import Path

from django.conf import settings

from webapp.imports.formats import FORMATS
from webapp.imports.formats.tests.examples import DATA
from webapp.imports.log_series import LOG_FORMAT

KINDS = {"real", "published", "form"}


def table(path: Path, title: str) -> list[list[str]]:
    """The cells of the rows of the first table whose head begins with this title."""
    _, _, after = path.read_text().partition(f"| {title} |")
    lines = after.partition("\n\n")[0].split("\n")[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line]


def test_every_format_is_documented_with_versions_examples_and_units() -> None:
    rows = table(Path(settings.BASE_DIR) / "docs/how-to/importing.md", "format")
    assert {row[0].strip("`") for row in rows if row[0]} == {*FORMATS, LOG_FORMAT}
    for row in rows:
        assert all(row[1:]), row
        assert len(row) == 5, row


def test_what_the_documents_call_real_has_a_real_example() -> None:
    """In the table of formats, a row without a format belongs to the row above."""
    name, claimed = "", set()
    for row in table(Path(settings.BASE_DIR) / "docs/how-to/importing.md", "format"):
        name = row[0].strip("`") or name
        if "real" in row[2]:
            claimed.add(name)
    files = table(DATA / "README.md", "files")
    assert claimed == {pattern.split("/")[0] for pattern, kind in _patterns(files) if "real" in kind}


def test_every_example_file_has_one_origin() -> None:
    rows = table(DATA / "README.md", "files")
    assert {kind for row in rows for kind in row[1].split(", ")} == KINDS
    named = [path for pattern, _ in _patterns(rows) for path in DATA.glob(pattern)]
    assert sorted(named) == sorted(path for path in DATA.rglob("*") if path.is_file() and path.parent != DATA)


def _patterns(rows: list[list[str]]) -> list[tuple[str, str]]:
    return [(pattern, row[1]) for row in rows for pattern in re.findall(r"`([^`]+)`", row[0])]
