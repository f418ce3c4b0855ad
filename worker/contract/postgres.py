"""The common part of workloads on a temporary PostgreSQL cluster in the target."""

from typing import Annotated

from msgspec import Meta

from worker.contract.base import KIB, MIB, Workload

CLUSTER_BYTES = 64 * MIB  # of an empty cluster, and growth of the tables


class PostgresWorkload(Workload, frozen=True, kw_only=True):
    """Creates a cluster, fills a database, and runs transactions for `runtime_s`. Each trial has a new cluster."""

    prefill: bool = False
    runtime_s: Annotated[int, Meta(ge=1, le=30 * 86400)] = 60
    # Settings of the server. The defaults are those of PostgreSQL.
    shared_buffers_bytes: Annotated[int, Meta(ge=MIB, le=2**44, multiple_of=8 * KIB)] = 128 * MIB
    fsync: bool = True
    synchronous_commit: bool = True
    full_page_writes: bool = True
    max_wal_bytes: Annotated[int, Meta(ge=32 * MIB, le=2**44, multiple_of=MIB)] = 1024 * MIB

    @property
    def connections(self) -> int:
        """Clients, each with one transaction at a time."""
        raise NotImplementedError

    @property
    def database_bytes(self) -> int:
        """About the size of the tables and indexes."""
        raise NotImplementedError

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
    def random(self) -> bool:
        return True

    @property
    def load_bytes(self) -> int:
        """The tables, and the same again as log."""
        return CLUSTER_BYTES + 2 * self.database_bytes

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
        return CLUSTER_BYTES + self.database_bytes + self.max_wal_bytes

    @property
    def needs_folder(self) -> bool:
        return True
