"""Bench: products side by side."""

from django.http import HttpRequest, HttpResponse
from ninja import Field, Query, Router, Schema

from webapp.api.common.schemas import json_of, schema_of
from webapp.bench.answer import BenchAnswer, answer
from webapp.bench.products import BenchRefused
from webapp.bench.side_by_side import read_asked, side_by_side
from webapp.bench.workloads import CHOICES

router = Router(tags=["bench"])
_KINDS = "model, serial, controller, host, target, layout, configuration, import, run"


class BenchIn(Schema):
    product: list[str] = Field(description=f"kind:name, repeated, at most eight; kinds are {_KINDS}")
    baseline: str = Field("", description="one of the products; default: the first")
    metric: str = Field("", description=f"one of {', '.join(CHOICES)}")
    ignore: list[str] = Field(
        [],
        description="factors, or labels as label:fill level, in which matched workloads may differ, repeated",
    )


@router.get("/bench", response=schema_of(BenchAnswer))
def bench(request: HttpRequest, asked: Query[BenchIn]) -> HttpResponse:
    """Products side by side: the workloads that they share, ratios to the baseline, and conclusions."""
    read = read_asked(asked.product, baseline=asked.baseline, metric=asked.metric, ignored=asked.ignore)
    if read is None:
        raise BenchRefused("bench_no_product", "product: write kind:name, for example model:INTEL SSDPF2KX038TZ.")
    return json_of(answer(side_by_side(read)))
