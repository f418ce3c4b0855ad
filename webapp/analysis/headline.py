"""The sentences that answer one question of a run, with the claims of its comparison.

Certain differences come first. Series without one share a sentence, whatever their small differences are: so two runs
of one plan have the same sentences unless their claims differ.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from math import log

from webapp.analysis.answer import (
    DIFFERENCES,
    ONCE,
    Cell,
    Comparison,
    Conclusion,
    Finding,
    FindingKind,
    Mark,
    Panel,
    Sentence,
    Series,
    Texts,
    after,
    once,
)
from webapp.analysis.cells import is_clear
from webapp.analysis.claims import MIN_BLOCKS, listed
from webapp.analysis.words import NONE, in_sentence, label_in_sentence, shown
from webapp.plans.engines import CHART_FACTORS
from webapp.plans.factors import FACTORS
from webapp.plans.load import LOAD, is_load
from webapp.results.reading.doubts import BESIDE_NOT_KEPT_UP, NOT_KEPT_UP

MOST_DIFFERENCES = 3
LIMIT_NS = 1e6  # of a latency, in the sentence about shares of the load
_LIMITS = (FindingKind.CEILING, FindingKind.SATURATION)

Compared = tuple[Panel, Series]
Measured = tuple[Series, Cell]


def headline(made: Comparison) -> Texts:
    """How the first series scales with the number of targets at once, else the differences; "" without results."""
    scaling = [(panel.name, _plain(sentence)) for panel in made.panels for sentence in panel.scaling[:1]]
    stated = [after(*each) for each in scaling[:1]] or _sentences(differences(made))
    return _joined(stated or list(_without_ratio(made))[:1])


def _plain(sentence: str) -> Texts:
    return Sentence((sentence.removesuffix("."),)).texts


def _joined(stated: Iterable[Texts]) -> Texts:
    stated = [each for each in stated if each["sentence"]]
    return {
        "sentence": " ".join(each["sentence"] for each in stated),
        "claim": ". ".join(each["claim"] for each in stated),
        "certainty": "; ".join(each["certainty"] for each in stated if each["certainty"]),
        "doubt": next((each["doubt"] for each in stated if each["doubt"]), ""),
    }


def headline_conclusion(made: Comparison) -> Conclusion:
    """The strongest claim of the headline."""
    if any(panel.scaling for panel in made.panels):
        return Conclusion.NONE
    compared = [series for _, series in _with_ratio(made)]
    alone = [series for panel in made.panels for series in panel.series if series.headline]
    known = {series.conclusion for series in compared or alone[:1]}
    return next((each for each in Conclusion if each in known), Conclusion.NONE)


def limits(made: Comparison, shares: Sequence[int]) -> Texts:
    """Where the values level off, and of charts without such a limit, the best value and where it was measured:
    `randread reached 412k IOPS at queue depth 32, its highest value (95 % CI 400k to 420k, n = 3).`

    `shares`: those of the load that the run has planned, in ascending order."""
    if made.x == LOAD and made.lower_is_better:
        return _joined([_within_limit(made, panel, series, shares) for panel in made.panels for series in panel.series])
    if is_load(made.x) and made.lower_is_better:
        return _joined([_within_limit_on_map(made, panel) for panel in made.panels if panel.series])
    cells = [cell for panel in made.panels for series in panel.series for cell in series.cells]
    if len(cells) == 1:
        return Sentence((f"{made.metric_label} {cells[0].text}", f"n = {cells[0].summary.n}")).texts
    if made.x in CHART_FACTORS:  # reads and writes, of which none is the best
        return _joined(_reached(made, made.levels[cell.level].text, cell) for cell in cells)
    reached = [each for each in made.findings if each.kind in _LIMITS and each.about == made.metric][:MOST_DIFFERENCES]
    limited = {(mark.panel, mark.series) for each in reached for mark in each.marks}
    best = {place: _best(made, panel) for place, panel in enumerate(made.panels) if panel.series}
    highest = [
        _highest_value(made, made.panels[place], series, cell)
        for place, (series, cell) in best.items()
        if (place, made.panels[place].series.index(series)) not in limited
    ]
    return _joined([*(once(each).texts for each in reached), *highest])


def _within_limit(made: Comparison, panel: Panel, series: Series, shares: Sequence[int]) -> Texts:
    """Up to which share of the load the latency stays below 1 ms: `p99 latency stays below 1 ms up to 50 % of the
    highest IOPS (95 % CI …, n = 3); at 75 % it is 2.86 ms (…)`. The claim ends before a share without a result. The
    highest IOPS themselves are a closed loop."""
    what, cells = made.metric_label, {made.levels[cell.level].number: cell for cell in series.cells}
    below = list(takewhile(lambda each: each in cells and _is_low(cells[each]), shares))
    parts: list[str] = []
    for share in map(FACTORS[LOAD].values.format, below[-1:]):
        parts += [f"{what} stays below 1 ms up to {share} of the highest IOPS", _sure(cells[below[-1]])]
    for number in shares[len(below) : len(below) + 1]:
        share, cell = FACTORS[LOAD].values.format(number), cells.get(number)
        if cell is None:
            parts.append(f"; at {share} there is no result" if below else f"At {share}, there is no result")
            continue
        said = f"; at {share} it is {cell.text}" if below else f"At {share}, {what} is {cell.text}"
        parts += _lagging(cell, f"; at {share}" if below else f"At {share}") or [said, _sure(cell)]
    texts = Sentence(tuple(parts)).texts
    return after(panel.name, after(series.name if made.series_by else "", texts))


def _is_low(cell: Cell) -> bool:
    """Whether its latency is below the limit. I/Os that were never sent have no latency."""
    return cell.summary.mean < LIMIT_NS and not _lagging(cell)


def _lagging(cell: Cell, where: str = "") -> list[str]:
    """`; at 90 %, the storage could not keep up (2 of 3 results)`; empty if all results reached their rate, and all
    streams beside them."""
    lags = ((f"the storage {NOT_KEPT_UP}", cell.lagging), (BESIDE_NOT_KEPT_UP, cell.lagging_beside))
    texts = [[f"{where}, {words}", f"{count} of {cell.results} results"] for words, count in lags if count]
    return texts[0] if texts else []


def _within_limit_on_map(made: Comparison, panel: Panel) -> Texts:
    """Up to which share of one stream's load the latency stays below 1 ms, at all shares of the other one: `p95 latency
    stays below 1 ms up to writer: Load 50 %, at every level of reader: Load; it is at most 0.93 ms (95 % CI …, n = 3)`.
    """
    columns = [[cell for series in panel.series for cell in series.cells if cell.level == level]
               for level in range(len(made.levels))]  # fmt: skip
    low = list(takewhile(lambda cells: len(cells) == len(panel.series) and all(map(_is_low, cells)), columns))
    high = [[cell for cell in cells if not _is_low(cell)] for cells in columns[len(low) : len(low) + 1]]
    below = [max(cells, key=_badness) for cells in low]
    above = [max(cells, key=_badness) for cells in high if cells]
    parts: list[str] = []
    for cell in below[-1:]:
        parts += [
            f"{made.metric_label} stays below 1 ms up to {made.x_label} {made.levels[cell.level].text}, at every level "
            f"of {made.series_label}; there, it is at most {cell.text}",
            _sure(cell),
        ]
    for cell in above:
        share = f"{made.x_label} {made.levels[cell.level].text}"
        reached = f"; at {share} it reaches {cell.text}" if below else f"{made.metric_label} is {cell.text} at {share}"
        parts += _lagging(cell, f"; at {share}" if below else f"At {share}") or [reached, _sure(cell)]
    return after(panel.name, Sentence(tuple(parts)).texts)


def _badness(cell: Cell) -> tuple[bool, float]:
    return bool(_lagging(cell)), cell.summary.mean


def _best(made: Comparison, panel: Panel) -> Measured:
    best = min if made.lower_is_better else max
    return best(
        ((series, cell) for series in panel.series for cell in series.cells), key=lambda each: each[1].summary.mean
    )


def _highest_value(made: Comparison, panel: Panel, series: Series, cell: Cell) -> Texts:
    level = made.levels[cell.level]
    at = level.text if is_clear(level) else f"{label_in_sentence(made.x, made.x_label)} {level.text}"
    where = ", ".join([*([series.name] if made.series_by else []), *([at] if len(made.levels) > 1 else [])])
    extreme = "lowest" if made.lower_is_better else "highest"
    placed = f" at {where}" if where else ""
    words = f"{panel.name or 'The run'} reached {_with_unit(made, cell)}{placed}, its {extreme} value"
    return Sentence((words, _sure(cell))).texts


def _reached(made: Comparison, name: str, cell: Cell) -> Texts:
    return Sentence((f"{name} reached {_with_unit(made, cell)}", _sure(cell))).texts


def _with_unit(made: Comparison, cell: Cell) -> str:
    unit = {"iops": in_sentence(made.metric_label), "number": made.unit}.get(made.shown_as, "")
    return f"{cell.text} {unit}".strip()


def _sure(cell: Cell) -> str:
    count = cell.summary.n
    return ONCE if count == 1 else f"95 % CI {cell.spread_text}, n = {count}"


def _with_ratio(made: Comparison) -> list[Compared]:
    return [(panel, series) for panel in made.panels for series in panel.series if series.against_baseline]


def _without_ratio(made: Comparison) -> Iterator[Texts]:
    """Why series are not compared, or the lowest and the highest value of the only series."""
    return (_texts(panel, series) for panel in made.panels for series in panel.series if series.headline)


def _sentences(findings: Sequence[Finding]) -> list[Texts]:
    """The largest differences in their order on the page, then what is not different."""
    certain = [each for each in findings if each.kind is FindingKind.DIFFERENCE]
    largest = sorted(certain, key=lambda each: -each.size)[:MOST_DIFFERENCES]
    sentences = [each.texts for each in certain if each in largest]
    if more := len(certain) - len(largest):
        sentences.append(_plain(f"{more} more {'differences are' if more > 1 else 'difference is'} certain."))
    return [*sentences, *(each.texts for each in findings if each.kind is not FindingKind.DIFFERENCE)]


def differences(made: Comparison) -> list[Finding]:
    """What is claimed of the series against their baselines. Series without a difference share a finding."""
    compared = _with_ratio(made)
    differences_found = [
        _finding(made, FindingKind.DIFFERENCE, [compared_series], _texts(*compared_series))
        for compared_series in compared
        if compared_series[1].conclusion in DIFFERENCES
    ]
    for conclusion, kind in ((Conclusion.EQUAL, FindingKind.EQUAL), (Conclusion.NONE, FindingKind.UNCERTAIN)):
        by_baseline: dict[str, list[Compared]] = {}
        for panel, series in compared:
            if series.conclusion is conclusion:
                by_baseline.setdefault(_baseline(panel), []).append((panel, series))
        differences_found += [
            _finding(made, kind, series_of_baseline, _together(made, conclusion, baseline, series_of_baseline))
            for baseline, series_of_baseline in by_baseline.items()
        ]
    return differences_found


def _finding(made: Comparison, kind: FindingKind, compared: Sequence[Compared], texts: Texts) -> Finding:
    against = [series.against_baseline for _, series in compared if series.against_baseline]
    return Finding(
        kind=kind,
        **texts,
        single=min(ratio.n for ratio in against) == 1,
        size=max(abs(log(ratio.ratio.value)) for ratio in against),
        marks=tuple(
            Mark(
                panel=made.panels.index(panel),
                series=panel.series.index(series),
                first=min(cell.level for cell in series.cells),
                last=max(cell.level for cell in series.cells),
            )
            for panel, series in compared
        ),
        about=made.metric,
    )


def _together(made: Comparison, conclusion: Conclusion, baseline: str, compared: Sequence[Compared]) -> Texts:
    """One sentence for series with the same claim: `read and write: no certain difference in IOPS of kyber and bfq
    against none (ratios from −2.1 % to +3.0 %, n = 5).` Mean ratios, if series have several points."""
    if len(compared) == 1:
        return _texts(*compared[0])
    charts = listed(_each_once(panel.name for panel, _ in compared if panel.name))
    names = _each_once(series.name for _, series in compared)
    against = [series.against_baseline for _, series in compared if series.against_baseline]
    count, what = min(ratio.n for ratio in against), in_sentence(made.metric_label)
    repeats = ONCE if count == 1 else f"n = {count}{': too few repeats' if count < MIN_BLOCKS else ''}"
    before = f"{charts}: " if charts else ""
    if conclusion is Conclusion.EQUAL:
        verb = "differ" if len(names) > 1 else "differs"
        margin = f"{100 * made.margin:g} %"
        return Sentence(
            (f"{before}{listed(names)} {verb} from {baseline} by less than {margin} in {what}", repeats)
        ).texts
    ratios = sorted(ratio.ratio.value for ratio in against)
    low, high = shown(ratios[0], made.ratio_as), shown(ratios[-1], made.ratio_as)
    mean = "mean " if any(series.points > 1 for _, series in compared) else ""
    span = f"{mean}ratio {low}" if low == high else f"{mean}ratios from {low} to {high}"
    if {low, high} <= set(NONE):
        span = "almost equal"
    no = "no" if before else "No"
    words = f"{before}{no} certain difference in {what} of {listed(names)} against {baseline}"
    return Sentence((words, f"{span}, {repeats}")).texts


def _each_once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _baseline(panel: Panel) -> str:
    return next((series.name for series in panel.series if series.is_baseline), "")


def _texts(panel: Panel, series: Series) -> Texts:
    return after(
        panel.name,
        {"sentence": series.headline, "claim": series.claim, "certainty": series.certainty, "doubt": series.doubt},
    )
