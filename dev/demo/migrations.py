"""Refuses data of another version of this project whose migrations have the same names but other content."""

from hashlib import sha256

from dev.console import ToolError
from dev.stack.state import REPOSITORY, State

FILE = "migrations"


def refuse_other_tables(state: State) -> None:
    """Raises ToolError if a migration was changed after it created tables in the demo's database."""
    now = {
        str(path.relative_to(REPOSITORY)): sha256(path.read_bytes()).hexdigest()
        for path in sorted(REPOSITORY.glob("webapp/*/migrations/0*.py"))
    }
    applied = state.read_facts(FILE)
    changed = [path for path, digest in applied.items() if now.get(path) != digest]
    if changed:
        raise ToolError(
            f"The demo's data in {state.root} belong to another version of Sweetspot ({changed[0]} differs). "
            "Run `make clean` to delete them, then `make demo`."
        )
    state.write_facts(FILE, now)
