"""`python -m dev.release.prepare 1.0.1`: write the new version into the files of the repository.

It sets the version of server, worker and command line, gives the entries under “Unreleased” in docs/CHANGELOG.md the
version and the date, and adds the new migrations to the list of released ones. The changes are for you to commit.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from dev.console import ToolError, run_command, say
from dev.release.migrations import HASHES, check_released, hash_lines
from dev.stack.state import REPOSITORY

CHANGELOG = REPOSITORY / "docs/CHANGELOG.md"
UNRELEASED = "## Unreleased\n"
# The wheel of the command line is without the worker, so it needs a line of its own.
VERSION_FILES = tuple(REPOSITORY / path for path in ("worker/__init__.py", "worker/client/__init__.py"))
_VERSION_LINE = re.compile(r'^__version__ = "(.*)"$', re.MULTILINE)


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1 or not re.fullmatch(r"\d+\.\d+\.\d+", arguments[0]):
        raise ToolError("Give the new version: python -m dev.release.prepare 1.0.1")
    (version,) = arguments
    if _numbers(version) <= _numbers(current_version()):
        raise ToolError(f"{version} is not newer than {current_version()}. Nothing was changed.")
    check_released()
    changes = released_changes(CHANGELOG.read_text(), version, f"{datetime.now(UTC):%Y-%m-%d}")
    CHANGELOG.write_text(changes)
    for path in VERSION_FILES:
        path.write_text(_VERSION_LINE.sub(f'__version__ = "{version}"', path.read_text()))
    HASHES.write_text("".join(hash_lines()))
    say(f"Version {version}. Next: read `git diff`, commit, and run `make release`.")
    return 0


def current_version() -> str:
    (version,) = _VERSION_LINE.findall(VERSION_FILES[0].read_text())
    return str(version)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def heading(version: str, day: str = "") -> str:
    return f"## {version}, {day}" if day else f"## {version}"


def released_changes(text: str, version: str, day: str) -> str:
    """The changelog with a dated section of the version. Raises ToolError.

    The section gets the entries under “Unreleased”. If it was written before, it gets only the date.
    """
    before, mark, rest = text.partition(UNRELEASED)
    if not mark:
        raise ToolError(f"{CHANGELOG} has no line “{UNRELEASED.strip()}”.")
    entries, next_heading, older = rest.partition("\n## ")
    is_written = older.partition("\n")[0] == version
    if is_written and entries.strip():
        raise ToolError(
            f"Move the entries under “Unreleased” into the section {version} of {CHANGELOG}, or delete them."
        )
    if is_written:
        return f"{before}{mark}\n{heading(version, day)}{older.removeprefix(version)}"
    if not entries.strip():
        raise ToolError(f"{CHANGELOG} has no entries under “Unreleased”: say what changes for users.")
    return f"{before}{mark}\n{heading(version, day)}\n{entries}{next_heading}{older}"


if __name__ == "__main__":
    run_command(main)
