"""Released migrations: the list of their files' hashes, which `make check` compares with the files.

The list has the format of sha256sum. It does not exist before the first release.
"""

from hashlib import sha256
from pathlib import Path

from dev.console import ToolError
from dev.stack.state import REPOSITORY

HASHES = Path(__file__).with_name("migrations.sha256")


def migration_files() -> list[Path]:
    """Relative to the repository, sorted."""
    return sorted(path.relative_to(REPOSITORY) for path in REPOSITORY.glob("webapp/*/migrations/0*.py"))


def hash_lines() -> list[str]:
    """A line for each migration that the repository has now."""
    return [f"{sha256((REPOSITORY / path).read_bytes()).hexdigest()}  {path}\n" for path in migration_files()]


def released() -> list[str]:
    """The lines of the list; none before the first release."""
    return HASHES.read_text().splitlines(keepends=True) if HASHES.exists() else []


def check_released() -> None:
    """Raises ToolError if a released migration was edited or removed."""
    if changed := [line.split()[1] for line in released() if line not in set(hash_lines())]:
        raise ToolError(
            f"Released migrations were edited or removed: {', '.join(changed)}. Servers that applied them refuse the "
            "new files. Restore these files, and put the change into a new migration."
        )
