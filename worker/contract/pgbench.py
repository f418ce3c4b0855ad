"""Workload of the pgbench engine: transactions on a temporary PostgreSQL cluster in the target."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from worker.contract.base import MIB
from worker.contract.postgres import PostgresWorkload

SCALE_BYTES = 16 * MIB  # of a scale: 100,000 accounts and their index, about 15 MB


class Script(StrEnum):
    """pgbench's built-in transactions."""

    TPCB = "tpcb-like"  # 3 updates, a select and an insert
    SIMPLE_UPDATE = "simple-update"  # without the updates of the small tables, for which clients wait for each other
    SELECT = "select-only"


class PgbenchWorkload(PostgresWorkload, tag="pgbench", frozen=True, kw_only=True):
    script: Script = Script.TPCB
    scale: Annotated[int, Meta(ge=1, le=100_000)] = 10
    clients: Annotated[int, Meta(ge=1, le=1000)] = 8
    threads: Annotated[int, Meta(ge=1, le=256)] = 1  # of pgbench, which share the clients

    @property
    def connections(self) -> int:
        return self.clients

    @property
    def database_bytes(self) -> int:
        return self.scale * SCALE_BYTES

    @property
    def words(self) -> str:
        return f"pgbench {self.script}"

    @property
    def write_share(self) -> float:
        """Of a database in memory, only writes reach the drive."""
        return 0.0 if self.script is Script.SELECT else 1.0
