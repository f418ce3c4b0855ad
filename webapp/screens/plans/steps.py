"""Steps of the editor's buttons: add, remove, move. They are the same with and without a script.

A button sends its step as `do`:  add:<block>   add:<block>:<factor>   remove:<block>:<row>   move:<block>:<from>:<to>
add-part   remove-part:<n>   move-part:<from>:<to>   — a block is `common` or the number of a part; all count from 0.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from webapp.plans.engines import ENGINES, engine_name
from webapp.plans.factors import ALTERNATIVES, FACTORS
from webapp.plans.part_levels import NAMED_KINDS
from webapp.screens.plans.draft import COMMON, MAX_ROWS, Draft, DraftPart, FactorRow

T = TypeVar("T")
MAX_STEP_LENGTH = 100  # `int` refuses texts of thousands of digits


def stepped(draft: Draft, step: str, factor: str = "") -> Draft:
    """The draft after the step; unchanged if the step is invalid. `factor` is the factor to add."""
    what, *where = step[:MAX_STEP_LENGTH].split(":")
    numbers = [int(text) for text in where if text.isdecimal()]
    if what == "add-part":
        return replace(draft, parts=(*draft.parts, _new_part(draft))[:50])
    if what == "remove-part" and numbers:
        return replace(draft, parts=_without(draft.parts, numbers[0]))
    if what == "move-part" and len(numbers) == 2:
        return replace(draft, parts=_moved(draft.parts, *numbers))
    if where and what in ("add", "remove", "move"):
        numbers = [int(text) for text in where[1:] if text.isdecimal()]
        return _in_block(draft, where[0], what, numbers, named(where[1] if len(where) > 1 else factor))
    return draft


def named(text: str) -> str:
    """The name of a factor from its name or label, as typed; "" if there is none."""
    words = text.strip().casefold()
    return next((name for name, one in FACTORS.items() if words in (name, one.label.casefold())), "")


def _in_block(draft: Draft, block: str, what: str, numbers: Sequence[int], factor: str) -> Draft:
    if block == COMMON:
        return replace(draft, common=_rows(draft.common, what, numbers, factor))
    if not block.isdecimal() or int(block) >= len(draft.parts):
        return draft
    parts = list(draft.parts)
    part = parts[int(block)]
    parts[int(block)] = replace(part, rows=_rows(part.rows, what, numbers, factor))
    return replace(draft, parts=tuple(parts))


def _rows(rows: tuple[FactorRow, ...], what: str, numbers: Sequence[int], factor: str) -> tuple[FactorRow, ...]:
    if what == "add":
        return (*rows, new_row(factor))[:MAX_ROWS]
    if what == "remove" and numbers:
        return _without(rows, numbers[0])
    return _moved(rows, numbers[0], numbers[1]) if what == "move" and len(numbers) == 2 else rows


def new_row(factor: str) -> FactorRow:
    """A new row with the factor's example, or its default."""
    known = FACTORS.get(factor)
    if known is None:
        return FactorRow("", "")
    plain = "" if known.default is None else known.values.write(known.default)
    return FactorRow(factor, known.example or plain)


def _new_part(draft: Draft) -> DraftPart:
    names = {part.name for part in draft.parts}
    name = next(f"Part {n}" for n in range(len(names) + 1, len(names) * 2 + 3) if f"Part {n}" not in names)
    common = {row.factor: row.levels for row in draft.common}
    engine = ENGINES[engine_name(common)]
    said = set(common) | {other for pair in ALTERNATIVES if {*pair} & set(common) for other in pair}
    first = next(factor for factor in engine.NAMED_BY if factor != engine.REQUIRED)
    return DraftPart(name, NAMED_KINDS, tuple(new_row(each) for each in (engine.REQUIRED, first) if each not in said))


def _without(items: tuple[T, ...], place: int) -> tuple[T, ...]:
    return tuple(item for at, item in enumerate(items) if at != place)


def _moved(items: tuple[T, ...], before: int, after: int) -> tuple[T, ...]:
    if not (0 <= before < len(items) and 0 <= after < len(items)):
        return items
    rest = list(_without(items, before))
    rest.insert(after, items[before])
    return tuple(rest)
