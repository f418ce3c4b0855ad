"""The list of plans, a plan or version by its address, and a plan described in words."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from django.db.models import Aggregate, Case, Exists, F, FloatField, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Extract
from django.http import Http404

from webapp.analysis import run_answer
from webapp.analysis.claims import MIN_BLOCKS
from webapp.analysis.models import FindingsMade
from webapp.plans import levels
from webapp.plans.document import Part, PlanDocument, read
from webapp.plans.engines import ENGINES, engine_name
from webapp.plans.estimate import Outline, outline
from webapp.plans.factors import BEFORE, FACTORS, PURGE, FactorKind, factor_of, name_layout, stream_and_factor
from webapp.plans.models import Plan, PlanVersion
from webapp.plans.part_levels import factor_texts
from webapp.plans.streams import named_levels
from webapp.results.selectors import written_bytes
from webapp.runs.models import Run, RunState
from webapp.screens import point_words
from worker.recipes import DEFAULT_ENGINE

# Finds the plan or version of an address.

_MAX_DIGITS = 9


def version_or_404(slug: str, number: str = "") -> PlanVersion:
    """The version; without a number the newest. Raises Http404."""
    wanted = Q()
    if number:
        if not number.isdecimal() or len(number) > _MAX_DIGITS:
            raise Http404(f"There is no version {number[:20]}.")
        wanted = Q(number=int(number))
    versions = PlanVersion.objects.select_related("plan", "created_by").filter(wanted, plan__slug=slug)
    version = versions.order_by("-number").first()
    if version is None:
        raise Http404("There is no such plan or version.")
    return version


# Describes a plan in words, one sentence per part.

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
_WRITES = re.compile("write|rw|trim|purge")  # in a pattern or a step


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
    words = []
    for name in names:
        both = _BOTH.get(name)
        if both is None or not {*both[0]} <= {*names}:
            words.append(_PATTERNS[name])
        elif both[1] not in words:
            words.append(both[1])
    return ", ".join(words)


def part_in_words(document: PlanDocument, part: Part) -> str:
    """`random read, random write · 4 KiB · queue depth 1, 32 · 3 s each`."""
    texts = factor_texts(document, part)
    phrases = _phrases(texts)
    for stream in part.streams:
        stream_phrases = _phrases(named_levels(texts, stream.name))
        phrases.append(f"{stream.name}: {', '.join(stream_phrases)}")
    return " · ".join([*phrases, *part.rules])


def _phrases(levels: Mapping[str, str]) -> list[str]:
    name_of_engine = engine_name(levels)
    engine = ENGINES[name_of_engine]
    texts = {**_BEFORE, **engine.PHRASES, **_AFTER}
    phrases = [] if name_of_engine == DEFAULT_ENGINE else [engine.LABEL]
    phrases += [
        text.format(_levels_in_words(name, levels[name], name_of_engine))
        for name, text in texts.items()
        if name in levels
    ]
    settings = [name for name in levels if name in FACTORS and FACTORS[name].kind is FactorKind.SETTING]
    phrases += [f"{point_words.label(name)} {_levels_in_words(name, levels[name])}" for name in settings]
    return [*phrases, *([f"before: {text}"] if (text := levels.get(BEFORE)) else [])]


MAX_CHARACTERS = 10_000  # of levels that a row of the list reads; far more than a large plan has
TOO_MANY = "too many levels to list"


class Shown(StrEnum):
    ALL = ""
    OWN = "own"
    BUILTIN = "builtin"
    DELETED = "deleted"


SHOWN_AS = {Shown.ALL: "All", Shown.OWN: "Our own", Shown.BUILTIN: "Built in", Shown.DELETED: "Deleted"}
_WORDS = {  # before and after `plans` in the heading
    Shown.ALL: ("", ""), Shown.OWN: ("", " of our own"), Shown.BUILTIN: ("built-in ", ""),
    Shown.DELETED: ("deleted ", ""),
}  # fmt: skip
_FILTERS = {
    Shown.ALL: Q(deleted_at=None),
    Shown.OWN: Q(deleted_at=None, builtin=""),
    Shown.BUILTIN: Q(deleted_at=None) & ~Q(builtin=""),
    Shown.DELETED: Q(deleted_at__isnull=False),
}


class Median(Aggregate):
    """PostgreSQL's percentile_cont(0.5)."""

    function = "percentile_cont"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()


# Built-in plans by topic, in the order of the list.
TOPICS: Mapping[str, tuple[str, ...]] = {
    "How fast is it?": (
        "first-look", "bm-flash-grid", "xdd-grid", "iozone-phases", "block-size-of-copies", "copy-a-file",
        "files-and-memory", "cache-edge", "memory-bandwidth",
    ),
    "How much load can it take?": (
        "threads", "saturation", "load-curve", "sweet-spot", "enterprise-mix", "database", "database-under-pgbench",
        "reader-beside-writer", "read-write-map", "idle-and-loaded",
    ),
    "Which settings are best?": (
        "io-engines", "polled-completions", "nvme-passthrough", "read-ahead", "one-change-at-a-time", "interrupts",
        "controller-cache", "write-barriers",
    ),
    "Does it stay fast?": ("gaps", "write-time-line", "fill-level", "drive-state"),
    "What do several targets share?": ("targets-at-once", "two-writers", "two-arrays", "many-clients"),
    "Which layout is best?": (
        "raid-levels", "strip-size", "stripes-over-arrays", "schedulers-and-file-systems", "rebuild-beside-clients",
    ),
    "What does the SNIA specification measure?": (
        "snia-iops", "snia-throughput", "snia-latency", "snia-write-saturation", "snia-idle-recovery",
        "snia-cross-stimulus", "snia-composite-blocks",
    ),
}  # fmt: skip
OWN = "Our own"
_TOPIC_OF = {name: topic for topic, names in TOPICS.items() for name in names}
_PLACES = [When(builtin="", then=Value(-1)), *(When(builtin=name, then=Value(n)) for n, name in enumerate(_TOPIC_OF))]


@dataclass(frozen=True)
class Row:
    """`took_s` is the median duration of done runs, None if there are none. `last` is the last run that ended, and
    `written_bytes` what its trials wrote: None without such a run, or if it only read and the plan writes elsewhere."""

    plan: Plan
    topic: str
    question: str  # without one, what the first part measures
    is_question: bool
    only_describes: bool  # too few repeats for a claim
    writes: bool
    overwrites: bool
    outline: Outline | None  # None: the plan is too large to be expanded for a list
    took_s: float | None
    last: Run | None
    written_bytes: int | None
    shares_title: bool  # with another listed plan


def listed_plans(search: str, shown: Shown) -> QuerySet[Plan]:
    """Every word must occur in the title, the name or the content of a version."""
    plans = Plan.objects.filter(_FILTERS[shown])
    for word in search.split()[:10]:
        mentioning = PlanVersion.objects.filter(document__icontains=word).values("plan")
        plans = plans.filter(Q(title__icontains=word) | Q(slug__icontains=word) | Q(pk__in=mentioning))
    if shown is Shown.DELETED:
        return plans.order_by("-deleted_at", "slug")
    return plans.order_by(Case(*_PLACES, default=Value(len(_TOPIC_OF))), "title", "slug")


def plans_heading(plans: QuerySet[Plan], search: str, shown: Shown) -> str:
    """`47 plans, 12 answered`. A plan is answered if the last run that ended is done, and its findings are made."""
    ended = Run.objects.filter(version__plan=OuterRef(OuterRef("pk")), ended_at__isnull=False).order_by("-number")
    answers = FindingsMade.objects.filter(run=Subquery(ended.values("pk")[:1]), run__state=RunState.DONE)
    counts = Counter(plans.order_by().values_list(Exists(answers.filter(version=run_answer.VERSION)), flat=True))
    count, answered = counts.total(), counts[True]
    before, after = _WORDS[shown]
    noun = f"{before}plan{'s' if count > 1 else ''}{after}{' found' if search else ''}"
    if not count:
        return f"No {noun}" if search or shown else "No plan yet"
    if count == 1:
        return f"1 {noun}, {'answered' if answered else 'not answered yet'}"
    of_them = {0: "none answered yet", count: "both answered" if count == 2 else "all answered"}
    return f"{count} {noun}, {of_them.get(answered, f'{answered} answered')}"


def rows(plans: Sequence[Plan]) -> list[Row]:
    """Rows of all plans, with four queries."""
    newest = PlanVersion.objects.filter(plan__in=plans).order_by("plan_id", "-number").distinct("plan_id")
    versions = {version.plan_id: version for version in newest}
    runs = Run.objects.filter(version__plan__in=plans)
    took = Extract(F("ended_at") - F("started_at"), "epoch")
    done = runs.filter(state=RunState.DONE).order_by().values("version__plan")
    usual = dict(done.annotate(took=Median(took)).values_list("version__plan", "took"))
    ended = runs.filter(ended_at__isnull=False).select_related("version").order_by("version__plan_id", "-number")
    last = {run.version.plan_id: run for run in ended.distinct("version__plan_id")}
    written = written_bytes([run.pk for run in last.values()])
    titles = Counter(plan.title for plan in plans)
    return [
        _row(plan, read(versions[plan.pk].document), usual.get(plan.pk), last.get(plan.pk), written, titles)
        for plan in plans
        if plan.pk in versions
    ]


def _row(
    plan: Plan,
    document: PlanDocument,
    took_s: float | None,
    last: Run | None,
    written: Mapping[UUID, int],
    titles: Mapping[str, int],
) -> Row:
    writes = any(_writes(factor_texts(document, part)) for part in document.parts)
    bytes_of_last = written.get(last.pk, 0) if last else 0
    return Row(
        plan=plan,
        topic=_TOPIC_OF.get(plan.builtin, "More") if plan.builtin else OWN,
        question=document.question or sentences(document)[0][1],
        is_question=bool(document.question),
        only_describes=document.repeats < MIN_BLOCKS and not document.goal,
        writes=writes,
        overwrites=overwrites_drives(document),
        outline=outline(document) if _characters(document) <= MAX_CHARACTERS else None,
        took_s=took_s,
        last=last,
        written_bytes=bytes_of_last if bytes_of_last or (last and not writes) else None,
        shares_title=titles[plan.title] > 1,
    )


def overwrites_drives(document: PlanDocument) -> bool:
    """Whether the plan overwrites block devices, or drives of a pool, if it runs on them."""
    return any(_overwrites_drives(factor_texts(document, part), part) for part in document.parts)


def _overwrites_drives(texts: Mapping[str, str], part: Part) -> bool:
    return bool(name_layout(texts)) or ("block" in part.on and (PURGE in texts or _writes(texts)))


def _writes(texts: Mapping[str, str]) -> bool:
    """Whether a pattern or a step writes."""
    return any(
        _WRITES.search(text) for name, text in texts.items() if stream_and_factor(name)[1] in ("pattern", BEFORE)
    )


def sentences(document: PlanDocument) -> list[tuple[str, str]]:
    """Name and sentence of each part, without sentences for parts after MAX_CHARACTERS of levels."""
    named_sentences, characters = [], 0
    for part in document.parts:
        characters += _characters_of(document, part)
        named_sentences.append((part.name, part_in_words(document, part) if characters <= MAX_CHARACTERS else TOO_MANY))
    return named_sentences


def _characters(document: PlanDocument) -> int:
    """Length of all levels as typed, in all parts."""
    return sum(_characters_of(document, part) for part in document.parts)


def _characters_of(document: PlanDocument, part: Part) -> int:
    return sum(map(len, factor_texts(document, part).values()))
