"""Programs that stand for a controller's tool: they print what is documented, or fail in a chosen way."""

import sys
from pathlib import Path

import pytest

DOCUMENTED = Path(__file__).parent / "documented"

_JSON = """
import json, sys
answers = json.load(open({path!r}))
place = sys.argv[1]
none = {{"Controller": 0, "Status": "Failure", "Description": "No drive found!"}}
print(json.dumps(answers.get(place, {{"Controllers": [{{"Command Status": none}}]}}), indent="\\t"))
"""
_BY_FIRST = """
import pathlib, sys
print((pathlib.Path({path!r}) / sys.argv[1].lstrip("-")).read_text(), end="")
"""
_BY_ALL = """
import pathlib, sys
print((pathlib.Path({path!r}) / " ".join(sys.argv[1:])).read_text(), end="")
"""
_TEXT = """
print(open({path!r}).read(), end="")
"""


def install(directory: Path, monkeypatch: pytest.MonkeyPatch, name: str, body: str) -> Path:
    """A program in Python, the only one of its kind that is found."""
    path = directory / name
    path.write_text(f"#!{sys.executable} -S\n{body}")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(directory))
    monkeypatch.setattr("worker.process.run._PLACES", ())
    return path


def printing(directory: Path, monkeypatch: pytest.MonkeyPatch, name: str, recorded: str) -> None:
    """`recorded` is a file or folder of `documented`."""
    path = DOCUMENTED / recorded
    kind = {".json": _JSON, ".txt": _TEXT}.get(path.suffix) or (_BY_FIRST if "megacli" in recorded else _BY_ALL)
    install(directory, monkeypatch, name, kind.format(path=str(path)))
