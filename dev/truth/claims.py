"""What a page claims: its colours, and the conclusions of its sentences and of its headline."""

from dataclasses import dataclass

from webapp.analysis.answer import Comparison, Conclusion
from webapp.analysis.headline import headline_conclusion
from webapp.bench.matching import Matched


@dataclass(frozen=True)
class Claims:
    page: bool  # a difference: a colour, or a sentence that does not say that it may be drift
    headline: bool
    equal: bool  # a sentence says that there is no difference
    warned: bool  # the page warns of drift


def claims_of(made: Comparison) -> Claims:
    series = [one for panel in made.panels for one in panel.series]
    against = [ratio for one in series for ratio in (one.against_baseline, *(c.against_baseline for c in one.cells))]
    is_coloured = any(ratio is not None and ratio.better is not None for ratio in against)
    return Claims(
        page=is_coloured or any(one.conclusion is Conclusion.DIFFERENT for one in series),
        headline=headline_conclusion(made) is Conclusion.DIFFERENT,
        equal=any(one.conclusion is Conclusion.EQUAL for one in series),
        warned=any(one.order for one in series),
    )


def has_claim(bench: Matched) -> bool:
    """Whether Bench claims a difference: a colour, or a sentence that does not say that it may be drift."""
    places = ((panel, product) for panel in bench.panels for product in bench.products)
    sentences = (bench.sentences(*place) for place in places)
    cells = (table.cell(key, 0) for table in bench.tables.values() for key in bench.measured)
    is_coloured = any(cell.against_baseline and cell.against_baseline.better is not None for cell in cells)
    return is_coloured or any(one is not None and one.conclusion is Conclusion.DIFFERENT for one in sentences)
