"""The answer of a run to its own question: what the factors do that its plan varies, and what its curves show. Its
headline, its page, notices about its end, its stored findings and the API read it here."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from urllib.parse import urlencode
from uuid import UUID

from webapp.analysis.answer import DIFFERENCES, Comparison, Conclusion, Finding, FindingKind, Struct, Texts
from webapp.analysis.claims import listed
from webapp.analysis.comparing import RATES, Matching, comparison_of, read_all, select, select_from
from webapp.analysis.default_questions import BLOCK, Chosen, load_questions, questions_of
from webapp.analysis.dimensions import MATCHED
from webapp.analysis.evidence import (
    AT_A_LEVEL,
    RunFinding,
    Source,
    place_of_evidence,
    with_evidence,
    with_seconds,
)
from webapp.analysis.experiments import next_experiment
from webapp.analysis.findings import WEAK, Ranked, importance, interference, recorded_findings
from webapp.analysis.headline import differences, headline, headline_conclusion, limits
from webapp.analysis.past_findings import past_findings, previous_runs
from webapp.analysis.question import CompareRefused, read_query
from webapp.analysis.recordings import recorded_points
from webapp.analysis.seals import scopes_of_run
from webapp.analysis.shares import Share, shares_of, shares_of_targets
from webapp.analysis.words import in_sentence
from webapp.core.answers import Question, all_answered, answered
from webapp.plans.document import read
from webapp.plans.factors import AT_ONCE
from webapp.plans.load import LOAD, MAX, is_load
from webapp.plans.streams import OF_TRIALS
from webapp.results.metrics import IOPS
from webapp.results.reading.filter import ResultFilter
from webapp.results.reading.query import ResultQuery, target_points
from webapp.runs.models import Run, Trial, TrialState
from webapp.runs.reasons import sentence

VERSION = 23  # raise it if rules, sentences or structs change: all answers and stored findings are made again
MOST_FINDINGS = 30
BETWEEN_CHARTS = frozenset({FindingKind.DIRECTION, FindingKind.RATIOS})
_AT_ONCE = OF_TRIALS | {AT_ONCE}  # questions about streams, or targets, that run at once
MOST_FACTORS = 3  # in a headline; the others are named
Compared = tuple[Chosen, Comparison]


class FactorAnswer(Struct, frozen=True, kw_only=True):
    """One factor that the plan varies, or its axes of load, over all targets and all levels of the other factors."""

    factor: str  # as in `series` of a comparison; "" for axes of load
    label: str
    text: str  # sentences
    claim: str  # the text without intervals and doubts
    conclusion: Conclusion  # the strongest claim of the text
    caution: str  # what else differs between the levels; ""
    query: str  # of the comparison, as in the address of Explore or of `GET /api/v1/compare`


class RunAnswer(Struct, frozen=True, kw_only=True):
    """Each factor has the claims of its comparison in Explore."""

    headline: str  # of the factors; "" without results. `reviews.answer_of` states the first finding instead
    claim: str  # of the first factor, or of that finding, without intervals and doubts
    conclusion: Conclusion  # of the first factor
    caution: str  # of the first factor
    factors: tuple[FactorAnswer, ...]  # certain differences first, then settings and layouts
    findings: tuple[RunFinding, ...]  # the most important first
    failures: str  # how many trials failed, and the first reason; "" if none failed


def run_answer(run: Run) -> RunAnswer:
    return answered(_question(run, previous_runs([run]).get(run.pk)))


def run_answers(runs: Iterable[Run]) -> list[RunAnswer]:
    """In the order of the runs; those that are stored with three queries."""
    listed = list(runs)
    previous = previous_runs(listed)
    return all_answered([_question(run, previous.get(run.pk)) for run in listed])


def _question(run: Run, previous: Run | None) -> Question[RunAnswer]:
    """The answer compares with the previous run, so it depends on its results, too. Marks may make another run it."""
    scopes = (*scopes_of_run(run), *(scopes_of_run(previous) if previous else ()))
    texts = (str(run.number), str(previous.number) if previous else "")
    return Question(texts, tuple(dict.fromkeys(scopes)), RunAnswer, partial(_answer, run.pk, previous))


def _answer(run_id: UUID, previous: Run | None) -> RunAnswer:
    """Reads the run itself, because a row that was read before the seal may be older than the seal."""
    run = Run.objects.select_related("version__plan").get(pk=run_id)
    of_run = ResultFilter(runs=(run.number,))
    measured = target_points(ResultQuery.of(of_run))
    questions = questions_of(measured) if measured else []
    about = [each for each in questions if each.about]
    compared, loads = _comparisons(run.number, of_run, about, load_questions(measured) if measured else [])
    factors = [_of_factor(run.number, *each) for each in compared if _has_ratio(each[1])]
    if not factors or len(about) < len(questions):
        shares = _shares_planned(run) if loads else []
        factors += [_of_load(run.number, *each, shares) for each in loads]
    factors.sort(key=lambda each: each.conclusion not in DIFFERENCES)  # stable
    return RunAnswer(
        headline=" ".join(_headline(factors)),
        claim=factors[0].claim if factors else "",
        conclusion=factors[0].conclusion if factors else Conclusion.NONE,
        caution=factors[0].caution if factors else "",
        factors=tuple(factors),
        findings=_findings(run, previous, [*compared, *loads]),
        failures=_failures(run),
    )


def factor_comparisons(run: Run) -> list[Compared]:
    """Of each factor that the plan varies, corrected together as in the answer: for charts of it."""
    of_run = ResultFilter(runs=(run.number,))
    measured = target_points(ResultQuery.of(of_run))
    about = [each for each in questions_of(measured) if each.about] if measured else []
    if not about:
        return []
    query = ResultQuery.of(of_run)
    try:
        return [each for each in _made(run.number, about, read_all(query)) if _has_ratio(each[1])]
    except CompareRefused:
        return []


def load_maps(run: Run) -> list[Comparison]:
    """Of a run with shares of the load of two streams at once: the latencies of each stream over both."""
    measured = target_points(ResultQuery.of(ResultFilter(runs=(run.number,))))
    maps = [each for each in load_questions(measured) if is_load(each.x) and each.x != LOAD] if measured else []
    return [made for _, made in _comparisons(run.number, ResultFilter(runs=(run.number,)), [], maps)[1]]


def _failures(run: Run) -> str:
    failed = Trial.objects.filter(run=run, state=TrialState.FAILED).order_by("index")
    count = failed.count()
    if not count:
        return ""
    code, fields = failed.values_list("reason_code", "reason_fields")[0]
    reason = sentence(code, fields).split("\n")[0][:200]
    return f"{count} of {run.trial_count} trials failed. First reason: {reason}"


def _headline(factors: Sequence[FactorAnswer]) -> Iterator[str]:
    yield from (each.text for each in factors[:MOST_FACTORS])
    rest = factors[MOST_FACTORS:]
    if certain := _labels(each for each in rest if each.conclusion in DIFFERENCES):
        yield f"Levels of {certain} differ, too."
    if others := undecided(each for each in rest if each.conclusion not in DIFFERENCES):
        yield f"{others}."


def undecided(factors: Iterable[FactorAnswer]) -> str:
    """ "" without factors."""
    labels = _labels(factors)
    return f"No certain difference between levels of {labels}" if labels else ""


def undecided_of(answer: RunAnswer) -> str:
    """That no factor of the plan has a certain difference; "" if one has, or none is compared."""
    about = [each for each in answer.factors if each.factor]
    return "" if any(each.conclusion in DIFFERENCES for each in about) else undecided(about)


def _labels(factors: Iterable[FactorAnswer]) -> str:
    labels = [in_sentence(each.label) for each in factors]
    return listed(labels) if labels else ""


def _comparisons(
    number: int, of_run: ResultFilter, about: Sequence[Chosen], load: Sequence[Chosen]
) -> tuple[list[Compared], list[Compared]]:
    """Of factors and of axes of load. Without comparisons that cannot be made, as
    with too many series. The results are read once."""
    query = ResultQuery.of(of_run)
    try:
        matching = read_all(query) if load else Matching(query, ())
    except CompareRefused:
        return [], []
    return _made(number, about, matching), _made(number, load, matching)


def _made(number: int, questions: Sequence[Chosen], matching: Matching) -> list[Compared]:
    made: list[Compared] = []
    for chosen in questions:
        query = read_query(_pairs(number, chosen))
        with suppress(CompareRefused):
            if chosen.fixed:
                made.append((chosen, comparison_of(select(query))))
            else:
                made.append((chosen, comparison_of(select_from(query, matching))))
    return made


def _findings(run: Run, previous: Run | None, compared: Sequence[Compared]) -> tuple[RunFinding, ...]:
    """Of whole charts, of series against their baselines, of the seconds of trials, and against the past. The run's own
    question comes first. That its factors have no certain difference comes after a change since the previous run, and
    before what the seconds say."""
    targets, document = tuple(map(str, run.targets.select_related("host"))), read(run.version.document)
    questions = max(1, sum(bool(chosen.about) for chosen, _ in compared))
    source = Source(run.number, run.version.plan.title, targets, run.ended_at)
    of_charts = [
        with_evidence(
            source, chosen.pairs, made, finding, caution=_caution(chosen, made),
            experiment=next_experiment(
                made, finding, chosen, document, run=run.number, targets=targets, questions=questions
            ),
        )
        for finding, chosen, made in _chart_findings(run, compared)
    ]  # fmt: skip
    before = past_findings(run, previous, source, document)
    recorded = list(_recorded(run, source))
    ordered = sorted([*of_charts, *recorded, *before], key=_importance)
    lead = [each for each in of_charts[:1] if each.kind not in WEAK]
    if not lead and ordered[:1] and ordered[0] in recorded:
        lead = [each for each in of_charts if each.kind is FindingKind.UNCERTAIN][:1]
    return (*lead, *(each for each in ordered if each not in lead))[:MOST_FINDINGS]


def _chart_findings(run: Run, compared: Sequence[Compared]) -> list[tuple[Finding, Chosen, Comparison]]:
    """The most important first, each once: also if several questions or both rates show it."""
    stated: list[tuple[Finding, Chosen, Comparison]] = []
    seen: set[object] = set()
    asked_factors = {chosen.about for chosen, _ in compared if chosen.about}
    for chosen, made in compared:
        further = interference.find(_shares(run, chosen), made) if chosen.about in _AT_ONCE else ()
        of_charts = [
            each for each in made.findings if not _is_of_another_question(made, each, asked_factors - {chosen.about})
        ]
        if is_load(made.x):  # its sentence says where the latency rises; that it rises is no news
            of_charts = []
        for finding in (*(_differences(made) if chosen.about else ()), *of_charts, *further):
            names = {finding.sentence, _evidence(made, finding)}
            if seen.isdisjoint(names):
                stated.append((finding, chosen, made))
            seen |= names
    return sorted(stated, key=lambda each: _importance(each[0]))[:MOST_FINDINGS]


def _is_of_another_question(made: Comparison, finding: Finding, others: Collection[str]) -> bool:
    """An effect between two levels of x of a single series, if another question of the run asks for their factor, or
    may do so: that question has the claim, with its correction."""
    is_along_x = all(len(made.panels[mark.panel].series) == 1 for mark in finding.marks)
    return bool(others) and finding.kind is FindingKind.EFFECT and is_along_x and made.x in {MATCHED, *others}


def _evidence(made: Comparison, finding: Finding) -> object:
    """What two findings of a run have in common if they say the same. IOPS and bandwidth of one block size are the same
    measurement, so their findings differ only along the block size. Between two patterns one ratio is enough."""
    about = finding.about.removeprefix(made.metric)
    if finding.kind in AT_A_LEVEL:
        return place_of_evidence(made, finding)
    if finding.kind in BETWEEN_CHARTS:
        return finding.kind, about
    rate = "" if made.metric in RATES and made.x != BLOCK else made.metric
    return place_of_evidence(made, finding), rate, about


def _shares(run: Run, chosen: Chosen) -> list[Share]:
    return shares_of_targets(run, IOPS) if chosen.about == AT_ONCE else shares_of(run, IOPS)


def _differences(made: Comparison) -> list[Finding]:
    """Without those that are stated as an asymmetry."""
    asymmetries = [each for each in made.findings if each.kind is FindingKind.ASYMMETRY]
    apart = {(mark.panel, mark.series) for each in asymmetries for mark in each.marks}
    baselines = {panel for panel, series in apart if made.panels[panel].series[series].is_baseline}
    return [
        each
        for each in differences(made)
        if each.kind is not FindingKind.DIFFERENCE
        or not any((mark.panel, mark.series) in apart or mark.panel in baselines for mark in each.marks)
    ]


def _recorded(run: Run, source: Source) -> Iterator[RunFinding]:
    """Of the seconds and counters of the trials, target by target."""
    by_target = recorded_points(run)
    for target, points in by_target.items():
        trials = [trial for point in points for trial in point.trials]
        for timed in recorded_findings(points):
            yield with_seconds(source, target, timed, trials, named=len(source.targets) > 1)


def _importance(finding: Ranked) -> tuple[bool, tuple[bool, bool, int, float]]:
    """A sort key, the most important first. Ratios between charts, such as of sequential to random reads, are no
    question of a plan: they come last, although they are large."""
    return finding.kind in BETWEEN_CHARTS, importance(finding)


def _has_ratio(made: Comparison) -> bool:
    return any(series.against_baseline or panel.scaling for panel in made.panels for series in panel.series)


def _of_factor(number: int, chosen: Chosen, made: Comparison) -> FactorAnswer:
    return _factor(number, chosen, made, headline(made), headline_conclusion(made))


def _shares_planned(run: Run) -> list[int]:
    """Those of the load, in ascending order."""
    planned = run.trials.order_by().values_list(f"point__{LOAD}", flat=True).distinct()
    return sorted(share for share in planned if share is not None and share != MAX)


def _of_load(number: int, chosen: Chosen, made: Comparison, shares: Sequence[int]) -> FactorAnswer:
    return _factor(number, chosen, made, limits(made, shares), Conclusion.NONE)


def _factor(number: int, chosen: Chosen, made: Comparison, texts: Texts, conclusion: Conclusion) -> FactorAnswer:
    return FactorAnswer(
        factor=chosen.about,
        label=chosen.label,
        text=texts["sentence"],
        claim=texts["claim"],
        conclusion=conclusion,
        caution=_caution(chosen, made),
        query=urlencode(_pairs(number, chosen)),
    )


def _caution(chosen: Chosen, made: Comparison) -> str:
    return "" if made.single_factor or not made.series_by or not chosen.about else made.verdict


def _pairs(number: int, chosen: Chosen) -> list[tuple[str, str]]:
    return [("run", str(number)), *chosen.pairs]
