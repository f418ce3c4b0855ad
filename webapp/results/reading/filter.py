"""A filter on results, and its form in an address.

    run=17,20..25&host=a&target=a/scratch&serial=S64GNE0R800123&plan=first-look&part=aged&label=adaptec
    &direction=read&repeat=2..5&factor.block_size=4k,8k&factor.iodepth=1..32 *2&invalid=1&import=3&controller=…
    &layout=…&tool=bm-flash&tool_version=fio 3.33&reference=1&fact.table=4K random

A repeated key, or several levels of a factor, match any of them; different keys must all match, except that a run and
an import match the results of both.
`factor.scheduler=kyber, not set` also finds results without the factor: a setting left as the host had it, or an
option that does not apply. `fact.<name>=<text>` finds results of imports with this label, such as a table or a
folder; `fact.<name>=unknown` those without it.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from webapp.core.errors import Refusal
from webapp.plans import levels
from webapp.plans.factors import FACTORS, Value, closest
from webapp.results.models import BOTH, NO_IO
from worker.contract.items import Direction
from worker.contract.steadiness import Verdict

FACTOR_PREFIX = "factor."
FACT_PREFIX = "fact."  # of labels of imports; in a comparison, also of facts of configurations
UNKNOWN = "unknown"  # an import does not state the label
DIRECTIONS = (*Direction, BOTH, NO_IO)
MAX_NUMBERS = 1000
_NUMBERS = re.compile(r"\s*([0-9]{1,9})\s*(?:\.\.\s*([0-9]{1,9})\s*)?", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{6,64}", re.ASCII)


class Absence(Enum):
    """The point does not have the factor. The value is the text in addresses and on pages."""

    NOT_SET = "not set"


NOT_SET: Literal[Absence.NOT_SET] = Absence.NOT_SET
Level = Value | Absence


class FilterRefused(Refusal):
    """The filter is not valid."""

    def __init__(self, message: str) -> None:
        super().__init__("filter_refused", message)


@dataclass(frozen=True)
class ResultFilter:
    """An empty field matches everything. Invalid results are left out unless `invalid`; references (published tables)
    unless `references`, or an import is named."""

    runs: tuple[int, ...] = ()  # numbers
    hosts: tuple[str, ...] = ()  # slugs
    targets: tuple[str, ...] = ()  # host/target
    models: tuple[str, ...] = ()  # of drives
    serials: tuple[str, ...] = ()
    controllers: tuple[str, ...] = ()  # models
    layouts: tuple[str, ...] = ()  # as plans write them, or labels of imports
    tools: tuple[str, ...] = ()  # engines, or tools whose output was imported
    tool_versions: tuple[str, ...] = ()  # a tool and its version: fio 3.33
    imports: tuple[int, ...] = ()  # numbers
    configurations: tuple[str, ...] = ()  # beginnings of digests
    plans: tuple[str, ...] = ()  # slugs
    parts: tuple[str, ...] = ()  # names of parts of plans
    labels: tuple[str, ...] = ()  # of hosts in their groups; NO_LABEL for results without one
    directions: tuple[str, ...] = ()  # contract.items.Direction or results.models.BOTH
    repeats: tuple[int, ...] = ()  # from 1
    steadiness: tuple[str, ...] = ()  # contract.steadiness.Verdict
    factors: Mapping[str, tuple[Level, ...]] = field(default_factory=dict)
    facts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # labels of imports; UNKNOWN for none
    invalid: bool = False
    references: bool = False


def read_filter(pairs: Iterable[tuple[str, str]]) -> ResultFilter:
    """A filter from the pairs of an address. Empty values are ignored. Raises FilterRefused with the key."""
    given: dict[str, list[str]] = {}
    for key, value in pairs:
        if value:
            given.setdefault(key, []).append(value)
    factors = {key.removeprefix(FACTOR_PREFIX): texts for key, texts in given.items() if key.startswith(FACTOR_PREFIX)}
    facts = {key.removeprefix(FACT_PREFIX): texts for key, texts in given.items() if key.startswith(FACT_PREFIX)}
    unknown = [key for key in given if key not in KEYS and not key.startswith((FACTOR_PREFIX, FACT_PREFIX))]
    if unknown:
        names = f"{', '.join(KEYS)}, factor.<name> or fact.<name>, a label of imports"
        raise FilterRefused(f"There is no filter `{unknown[0]}`. Use {names}.")
    read = {name: reader(given[key]) for key, (name, reader) in _READERS.items() if key in given}
    return ResultFilter(
        **read,  # type: ignore[arg-type]  # each reader gives what its field holds
        factors={name: _levels(name, texts) for name, texts in factors.items()},
        facts={name: _texts(texts) for name, texts in facts.items()},
        invalid=is_on(given, "invalid"),
        references=is_on(given, "reference"),
    )


def is_on(given: Mapping[str, list[str]], key: str) -> bool:
    """Whether a switch such as `invalid=1` is on; the last value counts."""
    return given.get(key, ["0"])[-1] in ("1", "true", "on", "yes")


def _texts(texts: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


def _numbers(key: str, named: str) -> Callable[[list[str]], tuple[int, ...]]:
    """`17`, `17, 18`, `20..25`."""

    def read(texts: list[str]) -> tuple[int, ...]:
        numbers: dict[int, None] = {}
        for piece in ",".join(texts).split(","):
            match = _NUMBERS.fullmatch(piece)
            if match is None:
                raise FilterRefused(f"{key}={piece.strip()}: {named}, for example 17 or 17,18 or 17..25.")
            first, last = int(match[1]), int(match[2] or match[1])
            if last < first or len(numbers) + last - first >= MAX_NUMBERS:
                raise FilterRefused(
                    f"{key}={piece.strip()}: a range must ascend and contain at most {MAX_NUMBERS:,} numbers."
                )
            numbers |= dict.fromkeys(range(first, last + 1))
        return tuple(numbers)

    return read


def _targets(texts: list[str]) -> tuple[str, ...]:
    for text in texts:
        if text.count("/") != 1:
            raise FilterRefused(f"target={text}: write a target as host/target.")
    return _texts(texts)


def _one_of(key: str, known: Collection[str]) -> Callable[[list[str]], tuple[str, ...]]:
    def read(texts: list[str]) -> tuple[str, ...]:
        for text in texts:
            if text not in known:
                raise FilterRefused(f"{key}={text} is unknown. Use {', '.join(known)}.")
        return _texts(texts)

    return read


def _digests(texts: list[str]) -> tuple[str, ...]:
    for text in texts:
        if not _DIGEST.fullmatch(text):
            raise FilterRefused(f"configuration={text}: write the first 6 or more characters of a digest.")
    return _texts(texts)


# key in the address -> field of the filter, and the reader of its texts
_READERS: Mapping[str, tuple[str, Callable[[list[str]], tuple[object, ...]]]] = {
    "run": ("runs", _numbers("run", "write run numbers")),
    "host": ("hosts", _texts),
    "target": ("targets", _targets),
    "model": ("models", _texts),
    "serial": ("serials", _texts),
    "controller": ("controllers", _texts),
    "layout": ("layouts", _texts),
    "tool": ("tools", _texts),
    "tool_version": ("tool_versions", _texts),
    "import": ("imports", _numbers("import", "write import numbers")),
    "configuration": ("configurations", _digests),
    "plan": ("plans", _texts),
    "part": ("parts", _texts),
    "label": ("labels", _texts),
    "direction": ("directions", _one_of("direction", DIRECTIONS)),
    "repeat": ("repeats", _numbers("repeat", "write repeat numbers")),
    "steadiness": ("steadiness", _one_of("steadiness", tuple(Verdict))),
}
KEYS = (*_READERS, "invalid", "reference")


def _levels(name: str, texts: list[str]) -> tuple[Level, ...]:
    if name not in FACTORS:
        meant = closest(name)
        raise FilterRefused(f"There is no factor `{name}`.{f' Did you mean `{meant}`?' if meant else ''}")
    pieces = ",".join(texts).split(",")
    written = [piece for piece in pieces if piece.strip().lower() != NOT_SET.value]
    absence = (NOT_SET,) if len(written) < len(pieces) else ()
    try:
        return (*(levels.parse(FACTORS[name], ",".join(written)) if written else ()), *absence)
    except levels.LevelError as error:
        raise FilterRefused(f"{FACTOR_PREFIX}{name}: {error}") from error


def write_level(name: str, level: Level) -> str:
    """A level of a factor in the form that `read_filter` reads."""
    return level.value if isinstance(level, Absence) else FACTORS[name].values.write(level)
