"""Regular expressions of the worker match ASCII digits and words only, and end with \\Z: `$` allows a line feed."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

WORKER = Path(__file__).parents[1]
CLASSES = re.compile(r"(?<!\\)(?:\\\\)*\\[dDwW]", re.ASCII)
DOLLAR = re.compile(r"(?<!\\)(?:\\\\)*\$")


def problems(source: str) -> Iterator[str]:
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Call) and ast.unparse(call.func).startswith("re.") and call.args:
            yield from _of_call(call)


def _of_call(call: ast.Call) -> Iterator[str]:
    texts = [each.value for each in ast.walk(call.args[0]) if isinstance(each, ast.Constant)]
    pattern, options = "".join(text for text in texts if isinstance(text, str)), ast.unparse(call)
    if CLASSES.search(pattern) and "re.ASCII" not in options:
        yield f"line {call.lineno}: {pattern!r} matches digits and letters of all scripts: use [0-9] or re.ASCII"
    if DOLLAR.search(pattern) and "re.MULTILINE" not in options:
        yield f"line {call.lineno}: {pattern!r} ends before a line feed: use \\Z or fullmatch"


def test_it_finds_both_problems() -> None:
    assert len(list(problems(r're.compile(r"^\d+$")'))) == 2
    assert not list(problems(r're.compile(r"^\d+\Z", re.ASCII); re.compile(r"^a$", re.MULTILINE); re.compile(r"\$")'))


def test_the_patterns_of_the_worker_match_ascii_and_end_at_the_end() -> None:
    found = [
        f"{path.relative_to(WORKER)}, {words}"
        for path in sorted(WORKER.rglob("*.py"))
        if "tests" not in path.parts
        for words in problems(path.read_text())
    ]
    assert found == []
