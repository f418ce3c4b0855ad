"""The editor's fields for the template: rows with labels, help, choices and problems."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from webapp.plans.engines import ENGINE, ENGINES
from webapp.plans.factors import FACTORS, Factor, FactorKind
from webapp.plans.grids import FieldProblem
from webapp.plans.values import BlockSplit, Choice, Duration, LayoutLine, Size, Switch
from webapp.screens.plans.draft import COMMON, Draft, DraftPart, FactorRow
from worker.contract.workload import TargetKind

_KINDS = {TargetKind.BLOCK: "block devices", TargetKind.DIRECTORY: "directories", TargetKind.FILE: "files"}
_OFTEN = {
    "scheduler": ("none", "mq-deadline", "kyber", "bfq"),
    "rq_affinity": ("0", "1", "2"),
    "nomerges": ("0", "1", "2"),
}
_GROUPS = {
    FactorKind.WORKLOAD: "Workload",
    FactorKind.STOPPING: "Workload",
    FactorKind.OPTION: "Further options of fio",
    FactorKind.PROCESS: "Processes of the engine",
    FactorKind.TARGETS: "Several targets",
    FactorKind.STREAMS: "Several streams",
    FactorKind.LAYOUT: "Layout of a pool's drives",
    FactorKind.DRIVE: "Drive preparation",
    FactorKind.SETTING: "Settings of the host",
}


@dataclass(frozen=True)
class Row:
    place: str  # id of its problem
    factor: str
    label: str
    known: bool
    levels: str
    choices: tuple[tuple[str, str], ...]  # level and label of each option; () if levels are typed
    hint: str
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Block:
    """The common factors or one part. `key` is the prefix of its field names."""

    key: str
    place: str
    index: str  # its name in `steps`
    says: str  # description of the rows, for labels
    name: str
    kinds: tuple[tuple[str, str, bool], ...]  # value, text, ticked
    rows: tuple[Row, ...]
    problems: tuple[str, ...]
    name_problems: tuple[str, ...]
    on_problems: tuple[str, ...]
    warnings: tuple[str, ...]
    rules: str = ""
    rules_problems: tuple[str, ...] = ()
    streams: str = ""
    streams_problems: tuple[str, ...] = ()
    before: str = ""
    before_problems: tuple[str, ...] = ()

    @property
    def offered(self) -> list[tuple[str, str]]:
        """Names and labels of the common factors that it does not have."""
        own = {row.factor for row in self.rows}
        return [(name, FACTORS[name].label) for name in OFFERED if name not in own]


@dataclass(frozen=True)
class EditorForm:
    draft: Draft
    common: Block
    parts: tuple[Block, ...]
    problems: Mapping[str, tuple[str, ...]]

    @property
    def whole(self) -> tuple[str, ...]:
        """Problems of the plan as a whole, and the number of fields with problems."""
        return self.problems.get("", ())

    @property
    def count(self) -> int:
        return sum(len(messages) for messages in self.problems.values())


_OF_STREAM = re.compile(r"^(parts\.\d+\.streams)\..*")  # all streams of a part have one field
Messages = Mapping[str, tuple[str, ...]]  # by place


def editor_form(
    draft: Draft, problems: Iterable[FieldProblem] = (), warnings: Iterable[FieldProblem] = ()
) -> EditorForm:
    said, warned = _by_place(problems), _by_place(warnings)
    rows = _rows(COMMON, draft.common, said, warned)
    common = Block(COMMON, COMMON, COMMON, "of all parts", "", (), rows, (), (), (), ())
    return EditorForm(draft, common, tuple(_part(n, part, said, warned) for n, part in enumerate(draft.parts)), said)


def _by_place(found: Iterable[FieldProblem]) -> Messages:
    said: dict[str, tuple[str, ...]] = {}
    for one in found:
        place = _OF_STREAM.sub(r"\1", one.place)
        said[place] = (*said.get(place, ()), one.message)
    return said


def _part(number: int, part: DraftPart, said: Messages, warned: Messages) -> Block:
    place = f"parts.{number}"
    return Block(
        key=f"p{number}",
        place=place,
        index=str(number),
        says=f"of part {number + 1}",
        name=part.name,
        kinds=_kinds(part.on),
        rows=_rows(f"{place}.factors", part.rows, said, warned),
        problems=said.get(place, ()),
        name_problems=said.get(f"{place}.name", ()),
        on_problems=said.get(f"{place}.on", ()),
        warnings=warned.get(place, ()),
        rules=part.rules,
        rules_problems=said.get(f"{place}.rules", ()),
        streams=part.streams,
        streams_problems=said.get(f"{place}.streams", ()),
        before=part.before,
        before_problems=said.get(f"{place}.before", ()),
    )


def _kinds(on: Sequence[str]) -> tuple[tuple[str, str, bool], ...]:
    """Kinds of target, ticked ones first and in their order, so that saving keeps it; also unknown kinds."""
    words_of = {kind.value: words for kind, words in _KINDS.items()}
    ticked = [(kind, words_of.get(kind, kind), True) for kind in on]
    return (*ticked, *((kind.value, words, False) for kind, words in _KINDS.items() if kind not in on))


def _rows(place: str, rows: Sequence[FactorRow], said: Messages, warned: Messages) -> tuple[Row, ...]:
    return tuple(_row(f"{place}.{row.factor}", row, said, warned) for row in rows)


def _row(place: str, row: FactorRow, said: Messages, warned: Messages) -> Row:
    known = FACTORS.get(row.factor)
    return Row(
        place=place,
        factor=row.factor,
        label=known.label if known else row.factor or "no factor yet",
        known=known is not None or not row.factor,
        levels=row.levels,
        choices=choices(known) if known else (),
        hint=hint(known) if known else "",
        problems=said.get(place, ()),
        warnings=warned.get(place, ()),
    )


def choices(factor: Factor) -> tuple[tuple[str, str], ...]:
    """Each level in its typed form, with a label. Only labels of engines differ from it."""
    if factor.name == ENGINE:
        return tuple((name, engine.LABEL) for name, engine in ENGINES.items())
    if isinstance(factor.values, Choice):
        return tuple((name, name) for name in factor.values.names)
    names = ("on", "off") if isinstance(factor.values, Switch) else _OFTEN.get(factor.name, ())
    return tuple((name, name) for name in names)


def hint(factor: Factor) -> str:
    """Help: unit, meaning and notation of levels."""
    written = _written(factor)
    told = (factor.unit and f"in {factor.unit}", factor.help, written and f"e.g. {written}")
    return " · ".join(text for text in told if text)


def _written(factor: Factor) -> str:
    if choices(factor):
        return ""  # shown beside the field
    if isinstance(factor.values, Size):
        return "4k · 4k, 1M · 512..4M *2"
    if isinstance(factor.values, Duration):
        return "10s · 5m · 1h"
    if isinstance(factor.values, LayoutLine):
        return (
            "single / xfs noatime · raid0 x1..8 chunk 64k / xfs|ext4 · 2 arrays of raid5 x4 chunk 64k / lvm stripe 256k"
        )
    if isinstance(factor.values, BlockSplit):
        return "4k/60:8k/40"
    return "1, 10, 40 · 1..64 *2 · 10..100 +10" if factor.numeric else ""


# Offered as buttons: the factors that most built-in plans and published tests vary or set. The others are searched.
OFFERED = (
    "pattern", "block_size", "iodepth", "numjobs", "ioengine", "direct", "read_percent", "size", "runtime", "ramp",
    "scheduler", "read_ahead_kb",
)  # fmt: skip


def picker() -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Groups of factors to choose from: name, label with unit, help."""
    return [
        (
            words,
            [
                (f.name, f"{f.label} ({f.unit})" if f.unit and not f.label.endswith(")") else f.label, f.help)
                for f in FACTORS.values()
                if f.kind is kind
            ],
        )
        for kind, words in _GROUPS.items()
    ]
