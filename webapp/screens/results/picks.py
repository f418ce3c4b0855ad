"""The filter controls above the table of results and the comparison: check boxes, a text field, or both.

A chosen value is always an option, so that people can see and remove it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Min
from django.http import QueryDict

from webapp.hosts.models import Host, Target
from webapp.hosts.selectors import NO_LABEL
from webapp.plans.engines import ENGINES
from webapp.plans.factors import FACTORS
from webapp.plans.models import Plan, PlanVersion
from webapp.plans.points import varying
from webapp.results.models import Configuration, Import, Origin
from webapp.results.reading.content import Point
from webapp.results.reading.filter import (
    DIRECTIONS,
    FACT_PREFIX,
    FACTOR_PREFIX,
    NOT_SET,
    FilterRefused,
    Level,
    ResultFilter,
    read_filter,
    write_level,
)
from webapp.results.reading.rows import name_with_version
from webapp.runs.models import Run, Trial
from webapp.screens import point_words
from webapp.screens.choices import Option, options_of
from worker.contract.steadiness import LABELS as STEADINESS

MAX_LABELS, MAX_ORIGINS = 20, 2000  # offered of imports; tests that are read for them
MAX_RUNS = 100
SHOWN_IN_SUMMARY = 3


@dataclass(frozen=True)
class Pick:
    """Several options can be chosen. With `hint` there is a text field; `typed` has the values without an option."""

    name: str
    label: str
    options: tuple[Option, ...]
    typed: str = ""
    hint: str = ""
    counted: bool = False  # the summary is the number of chosen options, not their names

    @property
    def summary(self) -> str:
        """The text of the closed control."""
        chosen = [option.text for option in self.options if option.chosen] + ([self.typed] if self.typed else [])
        if self.counted:
            return f"{len(chosen)} shown"
        more = f" and {len(chosen) - SHOWN_IN_SUMMARY} more" if len(chosen) > SHOWN_IN_SUMMARY else ""
        return ", ".join(chosen[:SHOWN_IN_SUMMARY]) + more

    @property
    def chosen(self) -> bool:
        return bool(self.summary) and not self.counted


def pairs_of(query: QueryDict, *without: str) -> list[tuple[str, str]]:
    """The pairs of an address without these keys."""
    return [(key, str(value)) for key, values in query.lists() if key not in without for value in values]


def lenient_filter(pairs: Sequence[tuple[str, str]]) -> ResultFilter:
    """The filter without invalid keys."""
    readable: list[tuple[str, str]] = []
    for key in dict.fromkeys(key for key, _ in pairs):
        pairs_of_key = [pair for pair in pairs if pair[0] == key]
        try:
            read_filter(pairs_of_key)
        except FilterRefused:
            continue
        readable += pairs_of_key
    return read_filter(readable)


def attribute_picks(chosen: ResultFilter) -> list[Pick]:
    """All attributes of results that a page offers. At most ten queries."""
    targets = list(Target.objects.values_list("host__slug", "slug", "model", "serial"))
    names = [f"{host}/{slug}" for host, slug, _, _ in targets]
    stated = Origin.objects.order_by().values_list("controller", "drive", "serial", "host", "imported__slug")
    labels = list(stated.distinct())
    own_labels = [each for each in labels if each[4] is None]  # filters leave out references
    imported = [(drive, serial) for _, drive, serial, *_ in own_labels]
    drives = {*(each[2:] for each in targets), *imported}
    models = sorted({model for model, _ in drives if model})
    serials = {serial: f"{model} {serial}".strip() for model, serial in drives if serial}
    hosts = sorted({*Host.objects.values_list("slug", flat=True), *(host for *_, host, _ in own_labels if host)})
    return [
        _runs(chosen),
        _pick("plan", "Plan", Plan.objects.filter(deleted_at=None).values_list("slug", "title"), chosen.plans),
        *_parts(chosen),
        *_labels(chosen),
        _pick("host", "Host", zip(hosts, hosts, strict=True), chosen.hosts),
        _pick("target", "Target", zip(names, names, strict=True), chosen.targets),
        _pick("model", "Drive model", zip(models, models, strict=True), chosen.models),
        _pick("serial", "Drive", sorted(serials.items(), key=lambda pair: pair[1]), chosen.serials),
        _pick("controller", "Controller", _controllers(each[0] for each in labels), chosen.controllers),
        *_imports_and_tools(chosen),
        _pick("direction", "Direction", [(name, name) for name in DIRECTIONS], chosen.directions),
        *_labels_of_imports(chosen),
        Pick("repeat", "Repeats", (), _ranges(chosen.repeats), hint="1..3"),
        _pick("steadiness", "Steadiness", STEADINESS.items(), chosen.steadiness),
    ]


def _controllers(imported: Iterable[str]) -> list[tuple[str, str]]:
    measured = Configuration.objects.exclude(controller="").order_by().values_list("controller", flat=True).distinct()
    return [(name, name) for name in sorted({*measured, *imported} - {""})]


def _imports_and_tools(chosen: ResultFilter) -> list[Pick]:
    """Without imports, only the tool with its version. The versions of engines are typed: finding them among all
    streams would take too long."""
    imports = [(str(number), title) for number, title in Import.objects.values_list("number", "title")]
    known = list(Origin.objects.order_by().values_list("tool", "tool_version").distinct()) if imports else []
    tools = sorted({*(tool for tool, _ in known), *ENGINES})
    versions = sorted({name_with_version(tool, version) for tool, version in known} | {*chosen.tool_versions})
    with_version = options_of(((name, name) for name in versions), *chosen.tool_versions)
    offered = [
        _pick("import", "Import", imports, [str(number) for number in chosen.imports]),
        _pick("tool", "Tool", [(name, name) for name in tools], chosen.tools),
    ]
    return [*(offered if imports else []), Pick("tool_version", "Tool and version", with_version, hint="fio 3.33")]


def _labels_of_imports(chosen: ResultFilter) -> list[Pick]:
    """Those of the chosen imports whose texts differ, at most MAX_LABELS, and those that the filter names."""
    texts: dict[str, set[str]] = {name: {*chosen_texts} for name, chosen_texts in chosen.facts.items()}
    if chosen.imports:
        stated = Origin.objects.filter(imported__number__in=chosen.imports).order_by().values_list("other", flat=True)
        for labels in stated[:MAX_ORIGINS]:
            for name, text in labels.items():
                if isinstance(text, str) and (name in texts or len(texts) < MAX_LABELS):
                    texts.setdefault(name, set()).add(text)
    return [
        _pick(f"{FACT_PREFIX}{name}", name, [(text, text) for text in sorted(known_texts)], chosen.facts.get(name, ()))
        for name, known_texts in texts.items()
        if len(known_texts) > 1 or name in chosen.facts
    ]


def _labels(chosen: ResultFilter) -> list[Pick]:
    """Empty if no run has a label."""
    known = list(Run.objects.exclude(label="").order_by("label").values_list("label", flat=True).distinct())
    offered = [*known, NO_LABEL] if known else []
    return (
        [_pick("label", "Label", zip(offered, offered, strict=True), chosen.labels)] if known or chosen.labels else []
    )


def _parts(chosen: ResultFilter) -> list[Pick]:
    """Parts of the chosen runs, or of the chosen plans; one query, none if neither is chosen."""
    names = list(chosen.parts)
    if chosen.runs:
        trials = Trial.objects.filter(run__number__in=chosen.runs).order_by()
        names += trials.values_list("part", flat=True).annotate(first=Min("index")).order_by("first")
    elif chosen.plans:
        versions = PlanVersion.objects.filter(plan__slug__in=chosen.plans).order_by("number")
        names += [part["name"] for content in versions.values_list("document", flat=True) for part in content["parts"]]
    offered = dict.fromkeys(names)
    return [_pick("part", "Part", zip(offered, offered, strict=True), chosen.parts)] if offered else []


def _runs(chosen: ResultFilter) -> Pick:
    runs = Run.objects.order_by("-number").values_list("number", "version__plan__title")[:MAX_RUNS]
    titles = {number: f"{number} · {title}" for number, title in runs}
    options = tuple(Option(str(number), text, number in chosen.runs) for number, text in titles.items())
    older = [number for number in chosen.runs if number not in titles]
    return Pick("run", "Run", options, _ranges(older), hint="17, 20..25")


def _ranges(numbers: Iterable[int]) -> str:
    """`1..3, 7`."""
    pieces: list[list[int]] = []
    for number in sorted(numbers):
        if pieces and number == pieces[-1][-1] + 1:
            pieces[-1].append(number)
        else:
            pieces.append([number])
    return ", ".join(str(piece[0]) if len(piece) == 1 else f"{piece[0]}..{piece[-1]}" for piece in pieces)


def configuration_pick(digests: Iterable[str], chosen: ResultFilter, shown: int) -> Pick:
    """The observed configurations, by the beginning of their digest."""
    pairs = [(digest[:shown], digest[:shown]) for digest in sorted(set(digests)) if digest]
    return _pick("configuration", "Configuration", pairs, chosen.configurations)


def _pick(name: str, label: str, pairs: Iterable[tuple[str, str]], chosen: Sequence[str]) -> Pick:
    """Targets that share a name share an option."""
    texts = dict(pairs)
    texts |= {value: value for value in chosen if value not in texts}
    return Pick(name, label, options_of(texts.items(), *chosen))


def factor_picks(
    all_points: Sequence[Point], chosen: ResultFilter, names: Iterable[str] = (), varied: Iterable[str] | None = None
) -> list[Pick]:
    """One for each factor that varies (`varied`, if known), that is in the filter, or that is in `names`."""
    offered = dict.fromkeys([*(varying(all_points) if varied is None else varied), *chosen.factors, *names])
    return [_factor(name, all_points, chosen.factors.get(name, ())) for name in offered if name in FACTORS]


def _factor(name: str, all_points: Sequence[Point], chosen: Sequence[Level]) -> Pick:
    factor = FACTORS[name]
    level_by_text = {repr(point[name]): point[name] for point in all_points if name in point}
    levels = sorted(level_by_text.values(), key=point_words.sort_key)
    options = tuple(Option(factor.values.write(level), factor.format(level), level in chosen) for level in levels)
    typed = ", ".join(write_level(name, level) for level in chosen if level not in (*levels, NOT_SET))
    if NOT_SET in chosen or any(name not in point for point in all_points):
        options += (Option(NOT_SET.value, NOT_SET.value, NOT_SET in chosen),)
    return Pick(f"{FACTOR_PREFIX}{name}", factor.label, options, typed, hint="1..32 *2" if factor.numeric else "")
