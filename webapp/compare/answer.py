"""The numbers of a saved comparison: computed from its query, or as they were when it was frozen."""

import zlib
from urllib.parse import parse_qsl

import msgspec

from webapp.compare.chart_points import chart_point
from webapp.compare.comparison import Comparison, Struct
from webapp.compare.latency import Distribution, distributions
from webapp.compare.models import SavedComparison
from webapp.compare.options import read_options, split
from webapp.compare.query import CompareRefused, read_query
from webapp.compare.selectors import comparison_of, for_latencies, select
from webapp.compare.timeline import TimeLines, time_lines


class Answer(Struct, frozen=True, kw_only=True):
    """The comparison, and the numbers of its view."""

    comparison: Comparison
    chart_point: str = ""  # text of the chart point of the other views
    distributions: tuple[Distribution, ...] = ()  # of the view latency
    lines: TimeLines | None = None  # of the view timeline


def answer_of(query: str) -> Answer:
    """Raises Refusal if the query cannot be answered any more."""
    pairs = parse_qsl(query)
    options, selected = read_options(pairs), select(read_query(split(pairs)[0]))
    comparison = comparison_of(selected)
    if options.view == "means" or not selected.rows:
        return Answer(comparison=comparison)
    point = chart_point(for_latencies(selected) if options.view == "latency" else selected, options.chart_point)
    if options.view == "latency":
        return Answer(comparison=comparison, chart_point=point.text, distributions=distributions(point))
    return Answer(comparison=comparison, chart_point=point.text, lines=time_lines(point, selected.query.metric))


def answer_to(saved: SavedComparison) -> Answer:
    """The frozen numbers, else those of now. Raises Refusal."""
    if saved.frozen is None:
        return answer_of(saved.query)
    try:
        return msgspec.json.decode(zlib.decompress(bytes(saved.frozen)), type=Answer)
    except (msgspec.DecodeError, zlib.error) as error:
        message = "The numbers were frozen by another version of Sweetspot, which this version cannot read."
        raise CompareRefused("comparison_unreadable", message) from error


def packed(answer: Answer) -> bytes:
    return zlib.compress(msgspec.json.encode(answer))
