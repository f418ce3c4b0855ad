"""The interface of an engine in plans: its factors, their effect on points and workloads, and their texts."""

from collections.abc import Mapping
from typing import Protocol

from webapp.plans.setting_rows import Factor, FactorKind
from webapp.plans.values import Choice, Count, Duration, Multiple, Size, Switch, Value
from worker.contract.workload import AnyWorkload, Buffers, Workload

# Factors shared by several engines.

SIZE = Factor(
    "size",
    "Size",
    Size(whole="whole device"),
    unit="B",
    cost=20,
    example="1G",
    help="size of each file, or of the used part of a device; `whole` for a whole device",
)
SIZE_PERCENT = Factor(
    "size_percent",
    "Size, share of capacity",
    Count(1, 100, " %"),
    unit="%",
    kind=FactorKind.OPTION,
    cost=20,
    example="10..100 +10",
    help="of a device or file, or of the free space of a directory; resolved when a run starts",
)
SIZE_MEMORY = Factor(
    "size_memory",
    "Size, multiple of memory",
    Multiple(),
    kind=FactorKind.OPTION,
    cost=20,
    example="0.5x, 2x",
    help="of the host's memory; resolved when a run starts",
)
RUNTIME = Factor("runtime", "Time", Duration(low=1), unit="s", default=10, help="of one trial", example="10s")
FILES = Factor("files", "Files", Count(1, 1024), cost=20, default=1, help="in a directory", directories_only=True)
PREFILL = Factor(
    "prefill",
    "Written first",
    Switch(),
    cost=10,
    default=True,
    help="files in a directory are written completely before their first trial; off: a writing trial creates them",
    directories_only=True,
)
BUFFERS = Factor(
    "buffers",
    "Data",
    Choice(tuple(Buffers)),
    cost=10,
    default=Buffers.INCOMPRESSIBLE.value,
    help="data written: incompressible, refilled for every I/O (slows fio), one random buffer repeated, or zeroes",
)
DROP_CACHES = Factor(
    "drop_caches", "Caches dropped", Switch(), default=False, help="drops the host's page cache before each trial"
)


Levels = Mapping[str, tuple[Value, ...]]


class PlanEngine(Protocol):
    """A module of this package. The constants are read-only properties here, because modules do not assign them."""

    @property
    def WORKLOAD(self) -> type[Workload]:  # noqa: N802 - constants of a module
        """Its workload in the contract."""
        ...

    @property
    def LABEL(self) -> str:  # noqa: N802
        """The label of its recipe."""
        ...

    @property
    def DEFAULT_METRIC(self) -> str:  # noqa: N802
        """The default metric of its recipe."""
        ...

    @property
    def FACTORS(self) -> tuple[Factor, ...]:  # noqa: N802
        """Factors of the workload and of its processes."""
        ...

    @property
    def REQUIRED(self) -> str:  # noqa: N802
        """The factor that every part must have; it has an example."""
        ...

    @property
    def ALTERNATIVES(self) -> tuple[tuple[str, str], ...]:  # noqa: N802
        """Pairs of factors that exclude each other. The first of a pair may have a default."""
        ...

    @property
    def SILENT_BY(self) -> str:  # noqa: N802
        """The factor whose level decides which other factors have no effect; "" if there is no such factor."""
        ...

    @property
    def CHART_BY(self) -> str:  # noqa: N802
        """The factor that has one chart per level in a comparison; "" for a single chart."""
        ...

    @property
    def SERIES_BY(self) -> str:  # noqa: N802
        """The factor that is compared first, unless a setting varies."""
        ...

    @property
    def DIRECTIONS_BY(self) -> str:  # noqa: N802
        """The factor that decides whether a workload reads, writes or both; "" if all workloads do the same."""
        ...

    @property
    def NAMED_BY(self) -> Mapping[str, str]:  # noqa: N802
        """The factors in the name of a point, with their text; {} is the level. A text in the plural is a count: the
        name does not contain a count of 1."""
        ...

    @property
    def PHRASES(self) -> Mapping[str, str]:  # noqa: N802
        """The factors in the sentence about a part, with their text; {} is replaced by the levels."""
        ...

    def silent(self, point: Mapping[str, object]) -> tuple[str, ...]:
        """Factors that have no effect at this point, so the point does not contain them."""
        ...

    def workload(self, point: Mapping[str, Value], *, seed: int) -> AnyWorkload:
        """Raises msgspec.ValidationError if the contract does not allow it. `seed` is for random offsets and data."""
        ...

    def kind(self, point: Mapping[str, Value]) -> tuple[Value, ...]:
        """The levels that decide how fast it writes, besides the block size and the layout."""
        ...

    def time_s(self, levels: Levels) -> float | None:
        """The mean time of the trials of a grid; None if an amount ends them."""
        ...
