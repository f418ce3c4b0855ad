"""`make check`: static checks of the code."""

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from dev import node
from dev.console import say
from dev.stack.state import REPOSITORY

TOOLS = Path(sys.executable).parent
PARALLEL = 2


@dataclass(frozen=True)
class Check:
    name: str
    argv: Sequence[str]
    folder: Path = REPOSITORY


@dataclass(frozen=True)
class Outcome:
    check: Check
    status: int
    output: str
    took_s: float


def checks() -> tuple[Check, ...]:
    """The longest first, so that the others run beside it."""
    django = [sys.executable, "-W", "ignore::RuntimeWarning", "manage.py", "makemigrations", "--check", "--dry-run"]
    return (
        Check("mypy --strict", [sys.executable, "-m", "mypy", "webapp", "worker", "dev"]),
        Check("ruff check", [sys.executable, "-m", "ruff", "check", "."]),
        Check("ruff format", [sys.executable, "-m", "ruff", "format", "--check", "."]),
        Check("import-linter", [str(TOOLS / "python"), str(TOOLS / "lint-imports"), "--no-cache"]),
        Check("migrations complete", django),
        Check("tsc", node.command("typescript/bin/tsc", "--noEmit"), node.FRONTEND),
        Check("biome", node.command("@biomejs/biome/bin/biome", "ci", "--colors=off", "."), node.FRONTEND),
    )


def environment() -> dict[str, str]:
    """Valid settings; no check connects to a database or a broker."""
    return {
        **os.environ,
        "SWEETSPOT_SECRET_KEY": secrets.token_urlsafe(48),
        "SWEETSPOT_DATABASE_URL": "postgres://nobody@/nothing?host=/nonexistent",
        "SWEETSPOT_REDIS_URL": "redis://nobody:nothing@127.0.0.1:1/0",
        "PYTHONPATH": str(REPOSITORY),
    }


def main() -> int:
    """Run all checks, two at a time; 1 if one fails."""
    wanted, env = checks(), environment()
    say("Checking: " + ", ".join(check.name for check in wanted))
    with ThreadPoolExecutor(PARALLEL) as pool:
        outcomes = [pool.submit(_run, check, env) for check in wanted]
        failed = [outcome.result().check.name for outcome in outcomes if not _report(outcome.result())]
    say(f"Checks failed: {', '.join(failed)}" if failed else "All checks passed.")
    return 1 if failed else 0


def _run(check: Check, env: dict[str, str]) -> Outcome:
    started_at = time.monotonic()
    done = subprocess.run(
        check.argv, cwd=check.folder, env=env, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    return Outcome(check, done.returncode, done.stdout, time.monotonic() - started_at)


def _report(outcome: Outcome) -> bool:
    good = outcome.status == 0
    say(f"  {'✓' if good else '✗'} {outcome.check.name} ({outcome.took_s:.1f} s)")
    if not good:
        say(outcome.output.rstrip())
    return good
