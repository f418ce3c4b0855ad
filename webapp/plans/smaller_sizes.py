"""Divides the sizes and amounts of a plan, so that it fits small targets. Pure."""

from collections.abc import Mapping, Sequence
from math import lcm

import msgspec

from webapp.plans import levels
from webapp.plans.document import Part, PlanDocument
from webapp.plans.factors import FACTORS
from webapp.plans.grids import part_grid
from webapp.plans.points import workload_of
from worker.contract.workload import AnyWorkload

SIZES = ("size", "amount", "skip")

Texts = Mapping[str, str]


def with_smaller_sizes(document: PlanDocument, most_bytes: int) -> PlanDocument:
    """The plan with all sizes and amounts divided by the smallest power of two with which each point fits into
    `most_bytes`.

    The sizes keep their ratios. They are rounded down to whole blocks of all jobs, but not below one block of each job.
    """
    works = [_workloads(document, part) for part in document.parts]
    needed = max((_needed(work) for some in works for work in some), default=0)
    divisor = 1 << (-(-needed // most_bytes) - 1).bit_length() if needed > most_bytes else 1
    if divisor == 1:
        return document
    every = [work for some in works for work in some]
    parts = tuple(
        msgspec.structs.replace(part, factors=_divided(part.factors, divisor, some))
        for part, some in zip(document.parts, works, strict=True)
    )
    return msgspec.structs.replace(document, common=_divided(document.common, divisor, every), parts=parts)


def _workloads(document: PlanDocument, part: Part) -> list[AnyWorkload]:
    found = []
    for point in part_grid(document, part).points:
        try:
            found.append(workload_of(point, seed=1))
        except msgspec.ValidationError:  # such points are left out
            continue
    return found


def _needed(work: AnyWorkload) -> int:
    return max(work.space_bytes, work.end_bytes or 0)


def _divided(factors: Texts, divisor: int, works: Sequence[AnyWorkload]) -> dict[str, str]:
    return {name: _text(name, text, divisor, works) if name in SIZES else text for name, text in factors.items()}


def _text(name: str, text: str, divisor: int, works: Sequence[AnyWorkload]) -> str:
    factor = FACTORS[name]
    step = lcm(*(work.largest_io_bytes if name == "skip" or work.random else work.size_step_bytes for work in works))
    smaller = [_smaller(value, divisor, step) for value in levels.parse(factor, text)]
    return ", ".join(dict.fromkeys(factor.values.write(value) for value in smaller))


def _smaller(value: object, divisor: int, step: int) -> int | None:
    if not isinstance(value, int):
        return None  # the whole device
    return max(step, value // divisor // step * step) if value else 0
