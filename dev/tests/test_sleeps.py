"""A test waits for a condition. One that sleeps says why, in a comment beside the call."""

import ast

from dev.stack.state import REPOSITORY


def test_every_sleep_of_a_test_has_a_reason() -> None:
    without_reason: list[str] = []
    for path in (path for name in ("worker", "webapp", "dev") for path in (REPOSITORY / name).glob("**/tests/**/*.py")):
        source = path.read_text()
        if "sleep(" not in source:
            continue
        lines = source.splitlines()
        without_reason += [
            f"{path.relative_to(REPOSITORY)}:{call.lineno}"
            for call in ast.walk(ast.parse(source))
            if isinstance(call, ast.Call)
            and ast.unparse(call.func) in ("time.sleep", "sleep")
            and "  # " not in lines[call.lineno - 1]
        ]
    assert without_reason == []
