"""Describes a plan in words, one sentence per part."""

from collections.abc import Mapping, Sequence

from webapp.plans import levels
from webapp.plans.document import Part, PlanDocument
from webapp.plans.factors import FACTORS, FactorKind
from webapp.plans.grids import factor_texts
from webapp.screens import points

_PATTERNS = {
    "read": "sequential read",
    "write": "sequential write",
    "randread": "random read",
    "randwrite": "random write",
    "readwrite": "sequential read and write mixed",
    "randrw": "random read and write mixed",
}
_BOTH = {
    name: (pair, words)
    for pair, words in (
        (("read", "write"), "sequential read and write"),
        (("randread", "randwrite"), "random read and write"),
    )
    for name in pair
}
# Factors in the sentence, in this order, with their text. {} is replaced by the levels.
_PHRASES: Mapping[str, str] = {
    "layout": "on {}",
    "pattern": "{}",
    "read_percent": "{} reads",
    "block_size": "{}",
    "block_split": "split {}",
    "ioengine": "{}",
    "at_once": "{} targets at once",
    "numjobs": "{} threads",
    "iodepth": "queue depth {}",
    "runtime": "{} each",
    "amount": "{} each",
}
_MAX_LISTED = 4


def _joined(texts: Sequence[str]) -> str:
    if len(texts) > _MAX_LISTED:
        return f"{texts[0]} to {texts[-1]}"
    return ", ".join(texts)


def _levels_in_words(factor: str, text: str) -> str:
    """The levels in words; as typed if they are invalid."""
    known = FACTORS.get(factor)
    if known is None:
        return text
    try:
        found = levels.parse(known, text)
        return (
            _patterns([str(level) for level in found])
            if factor == "pattern"
            else _joined(list(map(known.format, found)))
        )
    except levels.LevelError:
        return text


def _patterns(names: Sequence[str]) -> str:
    """Patterns in words; reads and writes of one kind are combined: `random read and write`."""
    said = []
    for name in names:
        both = _BOTH.get(name)
        if both is None or not {*both[0]} <= {*names}:
            said.append(_PATTERNS[name])
        elif both[1] not in said:
            said.append(both[1])
    return ", ".join(said)


def part_in_words(document: PlanDocument, part: Part) -> str:
    """`random read, random write · 4 KiB · queue depth 1, 32 · 3 s each`."""
    said = factor_texts(document, part)
    phrases = [phrase.format(_levels_in_words(name, said[name])) for name, phrase in _PHRASES.items() if name in said]
    settings = [name for name in said if name in FACTORS and FACTORS[name].kind is FactorKind.SETTING]
    phrases += [f"{points.label(name)} {_levels_in_words(name, said[name])}" for name in settings]
    return " · ".join(phrases)
