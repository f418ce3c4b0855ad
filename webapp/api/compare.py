"""Comparisons."""

from django.http import HttpRequest, HttpResponse
from ninja import Router

from webapp.api.common.schemas import json_of, schema_of
from webapp.api.result_filters import FILTERS, asked_pairs
from webapp.compare.comparison import Comparison
from webapp.compare.query import read_query
from webapp.compare.selectors import compare

router = Router(tags=["compare"])

_PARAMETERS: list[dict[str, object]] = [
    {"name": name, "in": "query", "required": name == "x", "schema": {"type": "string"}, "description": text}
    for name, text in (
        (
            "x",
            "factor, host, target, model, serial, run, plan, label, direction, repeat, configuration, or fact.<name>",
        ),
        ("series", "up to three of the same, comma-separated: each combination is a series"),
        ("panel", "one of the same: a chart for each of its levels"),
        ("metric", "iops, bytes_per_s, latency_mean, latency_p50, latency_p95, latency_p99, latency_p999, …"),
        ("ratios", "how ratios are written: ratio or percent; what suits them where it is left out"),
        ("baseline", "key of the series that the others are held against; the first where it is left out"),
    )
]


@router.get("/compare", response=schema_of(Comparison), openapi_extra={"parameters": [*_PARAMETERS, *FILTERS]})
def comparison(request: HttpRequest) -> HttpResponse:
    """Repeats summarised, series held against a baseline, and what else differs."""
    return json_of(compare(read_query(asked_pairs(request))))
