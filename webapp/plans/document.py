"""The content of a plan version, which is also the content of its YAML file.

Everything that a trial depends on is a factor: options of the workload (`block_size`), settings of the host
(`scheduler`), layouts. A factor that does not vary has one level. Levels are stored as a person types them
(`512..4M *2`, `1,10,40`, `none, mq-deadline`); `factors` defines each factor's name, type and unit, `levels` parses
the text.
"""

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

Levels = Annotated[str, Meta(min_length=1, max_length=1000)]
StreamName = Annotated[str, Meta(min_length=1, max_length=20, pattern=r"^[a-z][a-z0-9_-]*\Z")]
KindName = Annotated[str, Meta(max_length=20)]
FactorName = Annotated[str, Meta(min_length=1, max_length=60, pattern=r"^[a-z][a-z0-9_.-]*\Z")]


MAX_STOP_AFTER = 1000
MAX_SPREAD = 50
MAX_RULES = 50
MAX_STREAMS = 8
MAX_STEP_LINES = 20


class Order(StrEnum):
    LISTED = "listed"
    RANDOMISED = "randomised"  # within blocks; a block contains all points once


class PartStream(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One of several workloads that a part runs at the same time. Its factors override those of the part."""

    name: StreamName
    factors: dict[FactorName, Levels]


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One full-factorial grid of the plan. Its factors override the plan's common factors."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    factors: dict[FactorName, Levels]
    # Kinds of target it runs on; it skips other targets, and the preview says so.
    on: Annotated[tuple[KindName, ...], Meta(max_length=50)] = ("block", "directory", "file")
    rules: Annotated[tuple[Levels, ...], Meta(max_length=MAX_RULES)] = ()  # see `plans.rules`
    streams: Annotated[tuple[PartStream, ...], Meta(max_length=MAX_STREAMS)] = ()  # see `plans.streams`
    before: Annotated[tuple[Levels, ...], Meta(max_length=MAX_STEP_LINES)] = ()  # steps before trials: `plans.steps`


class PlanDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    title: Annotated[str, Meta(min_length=1, max_length=200)]
    parts: Annotated[tuple[Part, ...], Meta(min_length=1, max_length=50)]
    common: dict[FactorName, Levels] = {}  # factors of every part
    note: Annotated[str, Meta(max_length=20_000)] = ""  # Markdown
    repeats: Annotated[int, Meta(ge=1, le=100)] = 3
    # Further repeats are skipped once the 95 % interval between the trials of each point is within ± this; 0: never.
    spread_percent: Annotated[int, Meta(ge=0, le=MAX_SPREAD)] = 0
    repeats_min: Annotated[int, Meta(ge=2, le=100)] = 3  # before repeats are skipped
    order: Order = Order.RANDOMISED
    # Listed order: these factors first, the first one changes slowest; then the others by the cost of changing them.
    sequence: Annotated[tuple[FactorName, ...], Meta(max_length=200)] = ()
    drop_caches: bool = False  # before every trial
    retries: Annotated[int, Meta(ge=0, le=5)] = 1  # retries of lost attempts; never for destructive trials
    # A host gets no more trials of the run after this number of consecutive failures; 0: no limit.
    stop_after: Annotated[int, Meta(ge=0, le=MAX_STOP_AFTER)] = 10
    version: int = 1

    def names(self, factor: str) -> bool:
        """Whether a part or the common factors name it."""
        return any(factor in factors for factors in (self.common, *(part.factors for part in self.parts)))


def read(data: object) -> PlanDocument:
    """A document from the JSON of the database. Raises msgspec.ValidationError."""
    return msgspec.convert(data, PlanDocument)


def write(document: PlanDocument) -> dict[str, object]:
    """The JSON for the database."""
    plain: dict[str, object] = msgspec.to_builtins(document)
    return plain
