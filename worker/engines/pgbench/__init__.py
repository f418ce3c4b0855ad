"""The pgbench engine: `program` runs a temporary PostgreSQL cluster and pgbench, `stream` starts and follows it."""

import os
from collections.abc import Iterator

from worker.checks import Check, State
from worker.contract.inventory import EngineOffer
from worker.engines.pgbench import program
from worker.engines.pgbench.stream import run_stream
from worker.engines.pgbench.version import missing_user, version
from worker.recipes.pgbench import INSTALLATION

__all__ = ["check", "installation", "offer", "run_stream"]


def offer() -> EngineOffer | None:
    found = version()
    return EngineOffer(version=found, features=()) if found and not missing_user() else None


def installation() -> str:
    """The folder of the programs, which contains their major version, and the time of the last update."""
    folder = program.bin_folder()
    return f"{folder} {os.stat(f'{folder}/postgres').st_mtime_ns} {missing_user()}" if folder else "no PostgreSQL"  # noqa: PTH116


def check() -> Iterator[Check]:
    found = offer()
    if found is None:
        why = f"user {missing_user()} does not exist." if missing_user() else "PostgreSQL with pgbench was not found."
        yield Check("pgbench", State.NOTE, why, INSTALLATION)
        return
    yield Check("pgbench", State.OK, f"{found.version} in {program.bin_folder()}")
