"""Comparisons."""

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Router

from webapp.api.common.schemas import PARQUET, json_of, schema_of
from webapp.api.results import FILTERS, asked_pairs
from webapp.compare.comparison import Comparison, comparison_table
from webapp.compare.question import read_query
from webapp.compare.selectors import compare
from webapp.core.table_files.response import file_response

router = Router(tags=["compare"])

_PARAMETERS: list[dict[str, object]] = [
    {"name": name, "in": "query", "required": name == "x", "schema": {"type": "string"}, "description": text}
    for name, text in (
        (
            "x",
            "factor, host, target, model, serial, run, plan, label, direction, repeat, configuration, or fact.<name>; "
            "or matched: everything that varies beside series and panel, so that only equals are compared",
        ),
        ("series", "up to three of the same, comma-separated: each combination is a series"),
        ("panel", "one of the same: a chart for each of its levels"),
        (
            "metric",
            "iops, bytes_per_s, latency_mean, latency_p50, latency_p95, latency_p99, latency_p999, …; "
            "also cpu_per_io, power, iops_per_watt, iops_per_price, ceiling_share and temperature, where known",
        ),
        ("ratios", "format of ratios: ratio or percent; default: chosen by their size"),
        ("margin", "differences below it count as none, in percent; default: 5"),
        ("baseline", "key of the series that the others are compared with; default: the first"),
    )
]


@router.get("/compare", response=schema_of(Comparison), openapi_extra={"parameters": [*_PARAMETERS, *FILTERS]})
def comparison(request: HttpRequest) -> HttpResponse:
    """A comparison: repeats summarised, series compared with a baseline, and other differences."""
    return json_of(compare(read_query(asked_pairs(request))))


@router.get("/compare.parquet", openapi_extra={"parameters": [*_PARAMETERS, *FILTERS], "responses": PARQUET})
def comparison_parquet(request: HttpRequest) -> HttpResponse | StreamingHttpResponse:
    """The comparison as a Parquet file: a row for each series at each level, units in the metadata."""
    table = comparison_table(compare(read_query(asked_pairs(request))))
    return file_response(table, "sweetspot-comparison", "parquet")
