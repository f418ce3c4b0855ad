"""The table of factors: everything that a plan may vary.

A factor's stored values are those of `Trial.point` and `Result.point`. Factors of workloads are defined with their
engine in `plans.engines`. Settings are in `setting_rows`, with the worker's names, and are stored as text.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from webapp.plans.engines import ENGINE, ENGINES
from webapp.plans.factor import Factor, FactorKind
from webapp.plans.setting_rows import SAME_STATE, SETTING_ROWS
from webapp.plans.steps import StepTexts
from webapp.plans.values import (
    Choice,
    Count,
    LayoutLine,
    Token,
    Value,
    ValueRefused,
)
from worker.contract.purge import PurgeMethod
from worker.recipes import DEFAULT_ENGINE

__all__ = ["FACTORS", "Factor", "FactorKind", "Value", "ValueRefused", "by_cost", "closest"]


PURGE_LABELS = {
    "none": "none",
    PurgeMethod.DISCARD.value: "discard",
    PurgeMethod.NVME_FORMAT.value: "NVMe format, user data erase",
    PurgeMethod.NVME_FORMAT_CRYPTO.value: "NVMe format, crypto erase",
    PurgeMethod.NVME_SANITIZE_BLOCK.value: "NVMe sanitize, block erase",
    PurgeMethod.NVME_SANITIZE_CRYPTO.value: "NVMe sanitize, crypto erase",
    PurgeMethod.ATA_SECURE_ERASE.value: "ATA secure erase",
    PurgeMethod.ATA_ENHANCED_ERASE.value: "ATA enhanced secure erase",
    PurgeMethod.SCSI_FORMAT.value: "SCSI format",
}


AT_ONCE = "at_once"  # targets of a host that one trial uses together
MAX_AT_ONCE = 16
CHANGE = "change"  # from the base, if a part changes one factor at a time
BASE = "base"  # its level without a change
PURGE = "purge"  # of the drive before a trial
BEFORE = "before"  # steps before a trial; also the field `before` of a part


_ENGINE = Factor(
    ENGINE,
    "Engine",
    Choice(tuple(ENGINES), {name: engine.LABEL for name, engine in ENGINES.items()}),
    default=DEFAULT_ENGINE,
    cost=40,
    help="program that produces the load; one per part",
)
_DRIVE = (
    Factor(
        PURGE,
        "Purge before",
        Choice(("none", *PurgeMethod), PURGE_LABELS),
        kind=FactorKind.DRIVE,
        cost=30,
        help="purge of the whole drive, or of all drives under the layout, before each trial: destroys all data",
    ),
    Factor(
        BEFORE,
        "Steps before",
        StepTexts(),
        kind=FactorKind.DRIVE,
        cost=30,
        help="preparation before the measurement, steps separated by semicolons; `once`: only before the first trial "
        "of the part",
        example="write 1x sequential 128k; flush; pause 60s, none",
    ),
)
_TARGETS = (
    Factor(
        AT_ONCE,
        "Targets at once",
        Count(1, MAX_AT_ONCE),
        kind=FactorKind.TARGETS,
        help="targets of one host and kind, in the chosen order: each runs the whole workload, all start together, "
        "and the result is their sum",
    ),
)
_CHANGE = Factor(CHANGE, "Change", Token(r".{1,500}", f"`{BASE}`"), kind=FactorKind.CHANGE)
_LAYOUT = Factor(
    "layout",
    "Layout",
    LayoutLine(),
    kind=FactorKind.LAYOUT,
    cost=200,
    example="single / xfs, raid0 x4 chunk 64k / xfs",
    help="drives of a pool, combined and formatted; destroys all data on them. Several in one line: "
    "raid0 x1..8 chunk 64k · raid5 x4 chunk 8k..2M *2 / xfs|ext4 · 2 arrays of raid0 x4 chunk 64k / lvm stripe 256k · "
    "vd raid5 x4 strip 8k..1M *2 wb|wt",
)
_SETTINGS = tuple(
    Factor(row.name, row.label, row.values, row.unit, FactorKind.SETTING, row.cost, help=row.help, example=row.example)
    for row in SETTING_ROWS
)


def _of_engines() -> list[Factor]:
    """Factors of all engines, each name once, with the definition of the first engine."""
    found: dict[str, Factor] = {}
    for engine in ENGINES.values():
        for factor in engine.FACTORS:
            found.setdefault(factor.name, factor)
    return list(found.values())


FACTORS: Mapping[str, Factor] = {
    factor.name: factor for factor in (_ENGINE, *_of_engines(), _LAYOUT, *_TARGETS, _CHANGE, *_DRIVE, *_SETTINGS)
}


def factor_of(name: str, engine: str) -> Factor | None:
    """The factor as this engine defines it: engines may allow different levels."""
    own = next((factor for factor in ENGINES[engine].FACTORS if factor.name == name), None)
    return own or FACTORS.get(name)


# Alternatives: if a part names one, the other does not apply.
ALTERNATIVES = (*(pair for engine in ENGINES.values() for pair in engine.ALTERNATIVES), *SAME_STATE)


def by_cost(names: Iterable[str]) -> tuple[str, ...]:
    """Names sorted by cost, slowest first, then in the order of the table. Unknown names come last, alphabetically."""
    place = {name: index for index, name in enumerate(FACTORS)}
    known = sorted((n for n in names if n in FACTORS), key=lambda n: (-FACTORS[n].cost, place[n]))
    return (*known, *sorted(n for n in names if n not in FACTORS))


def closest(name: str) -> str:
    """The most similar known factor, or ""."""
    return next(iter(get_close_matches(name, FACTORS, n=1, cutoff=0.6)), "")
