"""HTML is written in templates, with short lines; Python files contain no tags in strings."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

WEBAPP = Path(__file__).resolve().parents[1]
ELEMENTS = (
    "a b body br button code div em form h[1-6] img input label li link ol option p script "
    "select small span strong svg table td th time tr ul"
)
LINE_LIMIT = 160  # characters: a longer line holds more than one thought, and its differences cannot be read
TAG = re.compile(rf"</?({'|'.join(ELEMENTS.split())})[\s>/]")


def strings(tree: ast.AST) -> Iterator[ast.Constant]:
    """String literals, also the parts of f-strings; no docstrings."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node


def test_python_files_contain_no_html() -> None:
    found = [
        f"{path.relative_to(WEBAPP)}:{node.lineno}"
        for path in WEBAPP.rglob("*.py")
        if not {"tests", "migrations"} & set(path.parts)
        for node in strings(ast.parse(path.read_text()))
        if TAG.search(str(node.value))
    ]
    assert found == []


def test_lines_of_templates_are_short() -> None:
    templates = list(WEBAPP.glob("*/templates/**/*.html"))
    long = [
        f"{path.relative_to(WEBAPP)}:{number}: {len(line)} characters"
        for path in templates
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > LINE_LIMIT
    ]
    assert templates
    assert long == []
