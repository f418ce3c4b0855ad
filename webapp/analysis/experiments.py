"""The next experiment: a plan that would confirm or refute a finding of a run, made from the plan of this run.

| finding | plan |
| --- | --- |
| values level off, or have a peak | finer levels around this level, three repeats |
| targets stop at one value | each target alone, and several at once: is the limit shared? |
| one curve crosses another | the levels around the crossing, five repeats |
| a value out of line, a gap | the same levels and their neighbours, ten repeats |
| a cliff | finer levels between both sides, three repeats |
| the run differs from the previous one | the same points, five repeats |
| not certain | the same points, as many repeats as a difference of this size needs (`detectable`) |
| others from single values | the same points, three repeats |

A certain finding has none. Only factors that the plan itself names are changed, and only to fewer or finer levels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import expm1, isqrt, log1p

import msgspec
from msgspec import structs

from webapp.analysis.answer import Comparison, Finding, FindingKind, Struct
from webapp.analysis.cells import levels_of
from webapp.analysis.claims import MIN_BLOCKS
from webapp.analysis.default_questions import TARGET, Chosen
from webapp.analysis.detectable import repeats_for, sigma_of
from webapp.analysis.findings.curves import BLOCK_SIZE, COUNTED, counted
from webapp.analysis.trial_metrics import metric_named
from webapp.analysis.words import in_sentence
from webapp.core.errors import Refusal
from webapp.plans import levels as plan_levels
from webapp.plans.document import Order, Part, PlanDocument, write
from webapp.plans.factors import AT_ONCE, FACTORS, MAX_AT_ONCE
from webapp.plans.grids import refuse_unsound
from webapp.plans.part_levels import factor_texts

REPEATS, CROSSING_REPEATS, AGAIN_REPEATS, OUTLIER_REPEATS = 3, 5, 5, 10
FEW_REPEATS = 5  # if the repeats say nothing about the noise
MOST_REPEATS = 30  # more are no plan for a night
SECTOR, PAGE = 512, 4096  # block sizes are multiples of these
_BENDS = (FindingKind.SATURATION, FindingKind.CEILING, FindingKind.PEAK)
_OUT_OF_LINE = (FindingKind.OUTLIER, FindingKind.GAP)
_TIMES = {3: "three", 5: "five", 10: "ten"}


class Experiment(Struct, frozen=True, kw_only=True):
    sentence: str  # what it measures, and which result confirms or refutes the finding
    plan: dict[str, object]  # plans.document.PlanDocument
    targets: tuple[str, ...]  # host/target


@dataclass(frozen=True)
class _Design:
    """`levels` of factors replace those of the plan; `only` these levels of factors are kept, as text."""

    sentence: str
    repeats: int
    levels: Mapping[str, Sequence[int]] = field(default_factory=dict)
    only: Mapping[str, frozenset[str]] = field(default_factory=dict)
    targets: tuple[str, ...] = ()


def next_experiment(
    made: Comparison, finding: Finding, chosen: Chosen, document: PlanDocument, *, run: int, targets: tuple[str, ...],
    questions: int,
) -> Experiment | None:  # fmt: skip
    """`document` and `questions`: of the run. None if the finding is certain, or the plan cannot be changed so."""
    design = _design(made, finding, chosen, questions)
    if design is None:
        return None
    parts = tuple(part for each in document.parts if (part := _changed(document, each, design)) is not None)
    if not parts:
        return None
    plan = structs.replace(
        document,
        title=f"Check run {run}: {finding.kind.value.replace('_', ' ')}",
        note=f"Finding of run {run}: {finding.sentence}\n\n{design.sentence}",
        parts=parts,
        repeats=design.repeats,
        repeats_min=min(document.repeats_min, max(2, design.repeats)),
        spread_percent=0,
        order=Order.RANDOMISED,
        sequence=(),
    )
    used = {name for part in parts for name in factor_texts(plan, part) if name not in part.factors}
    plan = structs.replace(plan, common={name: text for name, text in plan.common.items() if name in used})
    try:
        msgspec.convert(write(plan), PlanDocument)
        refuse_unsound(plan)
    except (Refusal, msgspec.ValidationError):
        return None
    return Experiment(sentence=design.sentence, plan=write(plan), targets=design.targets or targets)


def _design(made: Comparison, finding: Finding, chosen: Chosen, questions: int) -> _Design | None:
    if finding.kind is FindingKind.UNCERTAIN:
        return _repeats_needed(made, finding, questions)
    if finding.kind is FindingKind.CHANGED:
        words = "Confirmed if they differ from the previous run in the same way; refuted if they are as before."
        return _Design(f"Measure the same points {_TIMES[AGAIN_REPEATS]} times each. {words}", AGAIN_REPEATS)
    if finding.kind is FindingKind.CEILING and made.series_by == (TARGET,) and len(finding.marks) > 1:
        return _together(made, finding, chosen)
    if numbers := _around(made, finding):
        repeats, words = _purpose(finding.kind)
        sentence = f"Measure {_in_words(made.x, numbers)} {_TIMES[repeats]} times each. {words}"
        factors = _kept(made, finding, chosen)
        return _Design(sentence, repeats, {made.x: numbers}, factors, _targets(made, finding))
    if finding.single and finding.kind is not FindingKind.DIFFERENCE:
        words = "Measure the same points three times each. Confirmed if all repeats show it; refuted if they disagree."
        return _Design(words, REPEATS)
    return None


def _purpose(kind: FindingKind) -> tuple[int, str]:
    """How often the levels are measured, and which result confirms the finding."""
    if kind is FindingKind.CROSSING:
        return CROSSING_REPEATS, "Confirmed if the lead changes between the same levels; refuted if it stays."
    if kind in _OUT_OF_LINE:
        return OUTLIER_REPEATS, "Confirmed if the values are out of line again; refuted if they fit their neighbours."
    if kind is FindingKind.CLIFF:
        return REPEATS, "The plan shows between which two levels the values fall."
    if kind is FindingKind.PEAK:
        return REPEATS, "Confirmed if the highest value is at the same level; refuted if it is at another one."
    return REPEATS, "Confirmed if the values stop rising at the same level; refuted if they rise further."


# ---- levels


def _around(made: Comparison, finding: Finding) -> tuple[int, ...]:
    """Levels of x to measure; empty if they are no numbers of the plan, or the finding is not at a level."""
    known = [level.number for level in made.levels]
    if made.x not in FACTORS or finding.level is None or not finding.marks:
        return ()
    if any(number is None or number != int(number) for number in known):
        return ()
    numbers = sorted(int(number) for number in known if number is not None)
    at = numbers.index(int(known[finding.level] or 0))
    if finding.kind in _BENDS:
        return _finer(made.x, numbers[max(0, at - 1) : at + 2])
    if finding.kind is FindingKind.CLIFF:
        return _finer(made.x, numbers[max(0, at - 1) : at + 1])
    if finding.kind in _OUT_OF_LINE or finding.kind is FindingKind.CROSSING:
        marked = [numbers.index(int(known[end] or 0)) for mark in finding.marks for end in (mark.first, mark.last)]
        beside = finding.kind in _OUT_OF_LINE
        return tuple(numbers[max(0, min(marked) - beside) : max(marked) + 1 + beside])
    return ()


def _finer(name: str, numbers: Sequence[int]) -> tuple[int, ...]:
    """With a level between each two, in the middle of their logarithms."""
    between = [_middle(name, low, high) for low, high in pairwise(numbers)]
    return tuple(sorted({*numbers, *between}))


def _middle(name: str, low: int, high: int) -> int:
    if name != BLOCK_SIZE:
        return isqrt(low * high)
    unit = PAGE if low % PAGE == 0 else SECTOR
    return max(low, isqrt(low * high) // unit * unit)


def _in_words(name: str, numbers: Sequence[int]) -> str:
    """`4, 5, 8, 11 and 16 jobs`, `4 KiB and 8 KiB`, `queue depths 4 and 8`"""
    texts = [FACTORS[name].values.format(number) for number in numbers]
    words = " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))
    if name in COUNTED:
        return counted(name, words)
    return words if name == BLOCK_SIZE else f"{in_sentence(FACTORS[name].label)}s {words}"


# ---- the points of the finding


def _kept(made: Comparison, finding: Finding, chosen: Chosen) -> dict[str, frozenset[str]]:
    """The levels of charts and series that are evidence, by factor."""
    levels: dict[str, set[str]] = {}
    panels = chosen.panel.split(",") if chosen.panel else []
    for mark in finding.marks:
        panel = made.panels[mark.panel]
        keys = [*zip(panels, levels_of(panel.key), strict=False)]
        keys += zip(made.series_by, levels_of(panel.series[mark.series].key), strict=False)
        for name, key in keys:
            if name in FACTORS:
                levels.setdefault(name, set()).add(key)
    return {name: frozenset(keys) for name, keys in levels.items()}


def _targets(made: Comparison, finding: Finding) -> tuple[str, ...]:
    """Those that are series of the evidence."""
    if TARGET not in made.series_by:
        return ()
    place = made.series_by.index(TARGET)
    keys = [made.panels[mark.panel].series[mark.series].key for mark in finding.marks]
    return tuple(dict.fromkeys(levels_of(key)[place] for key in keys))


def _together(made: Comparison, finding: Finding, chosen: Chosen) -> _Design | None:
    """Two or more targets of one host with a common ceiling: is it one limit that they share?"""
    targets = _targets(made, finding)
    if len({target.partition("/")[0] for target in targets}) > 1 or not 1 < len(targets) <= MAX_AT_ONCE:
        return None
    value = metric_named(finding.about or made.metric).format(finding.value or 0.0)
    sentence = (
        f"Measure each target alone, and all {len(targets)} at once. They share a limit if the total stays at {value}; "
        "each has its own limit if the total grows."
    )
    levels: dict[str, Sequence[int]] = {AT_ONCE: (1, len(targets))}
    number = made.levels[finding.level].number if finding.level is not None else None
    if made.x in FACTORS and number is not None and number == int(number):
        levels[made.x] = (int(number),)
    return _Design(sentence, REPEATS, levels, _kept(made, finding, chosen), targets)


# ---- repeats


def _repeats_needed(made: Comparison, finding: Finding, questions: int) -> _Design | None:
    """With the noise of this run, the repeats that the preview of a plan asks for (`detectable`)."""
    compared = [each for panel in made.panels for series in panel.series if (each := series.against_baseline)]
    marked = [made.panels[mark.panel].series[mark.series].against_baseline for mark in finding.marks]
    noises = [sigma_of(each.ratio, each.n) for each in marked if each and each.n >= MIN_BLOCKS and each.ratio.low]
    difference = max(log1p(made.margin), finding.size)
    size = f"{100 * expm1(difference):.0f} %"
    if not noises:
        return _Design(f"Measure the same points {FEW_REPEATS} times each. This shows the noise.", FEW_REPEATS)
    repeats = repeats_for(difference, len(compared) * questions, max(noises), most=MOST_REPEATS)
    if repeats is None:
        return None
    repeats = max(repeats, min(each.n for each in marked if each) + 2)
    return _Design(
        f"Measure the same points {repeats} times each. With the noise of this run, that finds a difference of {size} "
        "with about 85 % probability.",
        repeats,
    )


# ---- the plan


def _changed(document: PlanDocument, part: Part, design: _Design) -> Part | None:
    """The part with the levels of the design; None if it has none of the points of the finding."""
    if not design.levels and not design.only:
        return part
    if part.streams:
        return None
    texts, factors = factor_texts(document, part), dict(part.factors)
    for name, numbers in design.levels.items():
        if name == AT_ONCE:
            factors[name] = ", ".join(map(str, numbers))
            continue
        written = [FACTORS[name].values.write(number) for number in numbers]
        if name not in texts or not set(_written(name, texts[name])) & set(written):
            return None
        factors[name] = ", ".join(written)
    for name, keys in design.only.items():
        known = _written(name, texts[name]) if name in texts else []
        chosen_texts = [text for text in known if text in keys]
        if known and not chosen_texts:
            return None
        if len(chosen_texts) < len(known):
            factors[name] = ", ".join(chosen_texts)
    return structs.replace(part, factors=factors)


def _written(name: str, text: str) -> list[str]:
    """Each level, as an address has it."""
    try:
        return [FACTORS[name].values.write(value) for value in plan_levels.parse(FACTORS[name], text)]
    except plan_levels.LevelError:
        return []
