"""Describes a plan in words, one sentence per part."""

from collections.abc import Mapping, Sequence

from webapp.plans import levels
from webapp.plans.document import Part, PlanDocument
from webapp.plans.engines import ENGINES, engine_name
from webapp.plans.factors import BEFORE, FACTORS, FactorKind, factor_of
from webapp.plans.part_levels import factor_texts
from webapp.plans.streams import named_levels
from webapp.screens import points
from worker.recipes import DEFAULT_ENGINE

_PATTERNS = {
    "read": "sequential read",
    "write": "sequential write",
    "randread": "random read",
    "randwrite": "random write",
    "readwrite": "sequential read and write mixed",
    "randrw": "random read and write mixed",
    "trim": "sequential trim",
    "randtrim": "random trim",
    "trimwrite": "sequential trim and write",
    "randtrimwrite": "random trim and write",
}
_BOTH = {
    name: (pair, words)
    for pair, words in (
        (("read", "write"), "sequential read and write"),
        (("randread", "randwrite"), "random read and write"),
    )
    for name in pair
}
# Factors of all engines in the sentence, before and after those of the engine.
_BEFORE: Mapping[str, str] = {"layout": "on {}"}
_AFTER: Mapping[str, str] = {
    "at_once": "{} targets at once",
    "hosts_at_once": "{} hosts at once",
    "streams": "streams {}",
    "streams_on": "{}",
}
_MAX_LISTED = 4


def _levels_in_words(factor: str, text: str, engine: str = DEFAULT_ENGINE) -> str:
    """The levels in words; as typed if they are invalid."""
    known = factor_of(factor, engine)
    if known is None:
        return text
    try:
        if factor == "pattern":
            return _patterns([str(level) for level in levels.parse(known, text)])
        if levels.count(known, text) > _MAX_LISTED:
            return " to ".join(map(known.format, levels.ends(known, text)))
        return ", ".join(map(known.format, levels.parse(known, text)))
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
    phrases = _phrases(said)
    for stream in part.streams:
        own = _phrases(named_levels(said, stream.name))
        phrases.append(f"{stream.name}: {', '.join(own)}")
    return " · ".join([*phrases, *part.rules])


def _phrases(said: Mapping[str, str]) -> list[str]:
    name_of_engine = engine_name(said)
    engine = ENGINES[name_of_engine]
    texts = {**_BEFORE, **engine.PHRASES, **_AFTER}
    phrases = [] if name_of_engine == DEFAULT_ENGINE else [engine.LABEL]
    phrases += [
        text.format(_levels_in_words(name, said[name], name_of_engine)) for name, text in texts.items() if name in said
    ]
    settings = [name for name in said if name in FACTORS and FACTORS[name].kind is FactorKind.SETTING]
    phrases += [f"{points.label(name)} {_levels_in_words(name, said[name])}" for name in settings]
    return [*phrases, *([f"before: {text}"] if (text := said.get(BEFORE)) else [])]
