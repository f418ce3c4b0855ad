"""Workload of the pgbench engine: transactions on a temporary PostgreSQL cluster in the target."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from worker.contract.base import KIB, MIB, Workload

SCALE_BYTES = 16 * MIB  # of a scale: 100,000 accounts and their index, about 15 MB
CLUSTER_BYTES = 64 * MIB  # of an empty cluster, and growth of the table of history


class Script(StrEnum):
    """pgbench's built-in transactions."""

    TPCB = "tpcb-like"  # 3 updates, a select and an insert
    SIMPLE_UPDATE = "simple-update"  # without the updates of the small tables, for which clients wait for each other
    SELECT = "select-only"


class PgbenchWorkload(Workload, tag="pgbench", frozen=True, kw_only=True):
    """Creates a cluster, fills a database, and runs transactions for `runtime_s`. Each trial has a new cluster."""

    prefill: bool = False
    script: Script = Script.TPCB
    scale: Annotated[int, Meta(ge=1, le=100_000)] = 10
    clients: Annotated[int, Meta(ge=1, le=1000)] = 8
    threads: Annotated[int, Meta(ge=1, le=256)] = 1  # of pgbench, which share the clients
    runtime_s: Annotated[int, Meta(ge=1, le=30 * 86400)] = 60
    # Settings of the server. The defaults are those of PostgreSQL.
    shared_buffers_bytes: Annotated[int, Meta(ge=MIB, le=2**44, multiple_of=8 * KIB)] = 128 * MIB
    fsync: bool = True
    synchronous_commit: bool = True
    full_page_writes: bool = True
    max_wal_bytes: Annotated[int, Meta(ge=32 * MIB, le=2**44, multiple_of=MIB)] = 1024 * MIB

    @property
    def direct(self) -> bool:
        return False

    @property
    def writes(self) -> bool:
        return True

    @property
    def reads(self) -> bool:
        """It reads only what it has written."""
        return False

    @property
    def uniform(self) -> bool:
        """Checkpoints and the first change of each page after them slow it down."""
        return False

    @property
    def words(self) -> str:
        return f"pgbench {self.script}"

    @property
    def random(self) -> bool:
        return True

    @property
    def write_share(self) -> float:
        """Of a database in memory, only writes reach the drive."""
        return 0.0 if self.script is Script.SELECT else 1.0

    @property
    def moved_bytes(self) -> int | None:
        return None

    @property
    def load_bytes(self) -> int:
        """The tables, and the same again as log."""
        return CLUSTER_BYTES + 2 * self.scale * SCALE_BYTES

    @property
    def startup_s(self) -> float:
        """initdb, the start and the end of the server: about 3 s of processor time."""
        return 3.0

    @property
    def time_s(self) -> int:
        return self.runtime_s

    @property
    def largest_io_bytes(self) -> int:
        return MIB

    @property
    def space_bytes(self) -> int:
        return CLUSTER_BYTES + self.scale * SCALE_BYTES + self.max_wal_bytes

    @property
    def features(self) -> tuple[str, ...]:
        return ()

    @property
    def needs_folder(self) -> bool:
        return True
