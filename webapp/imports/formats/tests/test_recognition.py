from pathlib import Path

import pytest

from webapp.imports import formats
from webapp.imports.errors import ImportRefused
from webapp.imports.formats.tests.examples import EXAMPLES, IDS


@pytest.mark.parametrize("path", EXAMPLES, ids=IDS)
def test_each_example_is_recognised_by_its_content(path: Path) -> None:
    assert formats.recognised(path.read_text()) == path.parent.name
    assert formats.parse(path.read_text())


def test_windows_line_ends() -> None:
    for path in EXAMPLES:
        text = path.read_text()
        assert len(formats.parse(text.replace("\n", "\r\n"))) == len(formats.parse(text)), path


@pytest.mark.parametrize("text", ["", "hello\n", "{}", "a,b,c\n1,2,3\n", "250, 10872, 0, 0\n"])
def test_other_files_are_not_recognised(text: str) -> None:
    assert formats.recognised(text) == ""
    with pytest.raises(ImportRefused, match="not known"):
        formats.parse(text)
