"""Workload of the engine sysbench OLTP: sysbench's transactions on a temporary PostgreSQL cluster in the target."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from worker.contract.postgres import PostgresWorkload

ROW_BYTES = 256  # of a row with its two indexes, about


class OltpTest(StrEnum):
    """Scripts of sysbench."""

    READ_WRITE = "oltp_read_write"  # 14 reads, and 4 writes
    READ_ONLY = "oltp_read_only"
    WRITE_ONLY = "oltp_write_only"
    POINT_SELECT = "oltp_point_select"  # one row


class OltpWorkload(PostgresWorkload, tag="sysbench_oltp", frozen=True, kw_only=True):
    test: OltpTest = OltpTest.READ_WRITE
    tables: Annotated[int, Meta(ge=1, le=1000)] = 1
    rows: Annotated[int, Meta(ge=1, le=2**31)] = 100_000  # of each table
    threads: Annotated[int, Meta(ge=1, le=1000)] = 8

    @property
    def connections(self) -> int:
        return self.threads

    @property
    def database_bytes(self) -> int:
        return self.tables * self.rows * ROW_BYTES

    @property
    def words(self) -> str:
        return f"sysbench {self.test}"

    @property
    def write_share(self) -> float:
        """Of a database in memory, only writes reach the drive."""
        return 1.0 if self.test in (OltpTest.READ_WRITE, OltpTest.WRITE_ONLY) else 0.0
