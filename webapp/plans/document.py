"""What a plan says: the typed content of a plan version, and of the YAML file it is exported to.

Everything that a trial depends on is a factor: options of the workload (`block_size`),
settings of the host (`scheduler`), later layouts. A factor that does not vary has one level.
Levels are kept as a person types them (`512..4M *2`, `1,10,40`, `none, mq-deadline`);
`factors` knows each factor's name, type and unit, `levels` reads the text.
"""

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

Levels = Annotated[str, Meta(min_length=1, max_length=1000)]
FactorName = Annotated[str, Meta(min_length=1, max_length=60, pattern=r"^[a-z][a-z0-9_.-]*$")]


MAX_STOP_AFTER = 1000


class Order(StrEnum):
    LISTED = "listed"
    RANDOMISED = "randomised"  # within blocks: all points once, then all points again …


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One full-factorial grid of the plan. Factors given here win over the plan's common ones."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    factors: dict[FactorName, Levels]
    on: tuple[str, ...] = ("block", "directory", "file")  # kinds of target it runs on; left out elsewhere, and said so


class PlanDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    title: Annotated[str, Meta(min_length=1, max_length=200)]
    parts: Annotated[tuple[Part, ...], Meta(min_length=1, max_length=50)]
    common: dict[FactorName, Levels] = {}  # factors of every part
    note: Annotated[str, Meta(max_length=20_000)] = ""  # Markdown
    repeats: Annotated[int, Meta(ge=1, le=100)] = 3
    order: Order = Order.RANDOMISED
    # Listed order: these factors first, the first one slowest; the others after them by what changing them costs.
    sequence: Annotated[tuple[FactorName, ...], Meta(max_length=200)] = ()
    drop_caches: bool = False  # before every trial
    retries: Annotated[int, Meta(ge=0, le=5)] = 1  # new attempts after a lost one; never for destructive trials
    # A host gets no more of the run once so many of its trials in a row have failed; 0: it goes on to the end.
    stop_after: Annotated[int, Meta(ge=0, le=MAX_STOP_AFTER)] = 10
    version: int = 1


def read(data: object) -> PlanDocument:
    """A document from the JSON of the database. Raises msgspec.ValidationError."""
    return msgspec.convert(data, PlanDocument)


def write(document: PlanDocument) -> dict[str, object]:
    """The JSON for the database."""
    plain: dict[str, object] = msgspec.to_builtins(document)
    return plain
