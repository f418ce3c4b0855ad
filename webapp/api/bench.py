"""Bench: products side by side."""

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from webapp.api.common.schemas import json_of, schema_of
from webapp.bench.answer import BenchAnswer, answer
from webapp.bench.asked import read_asked
from webapp.bench.products import BenchRefused
from webapp.bench.side_by_side import side_by_side

router = Router(tags=["bench"])
_PRODUCT = "kind:name, repeated; kinds are model, serial, controller, host, target, layout, configuration, import, run"


@router.get("/bench", response=schema_of(BenchAnswer))
def bench(
    request: HttpRequest,
    product: list[str] = Query(..., description=_PRODUCT),  # noqa: B008
    baseline: str = Query("", description="one of the products; default: the first"),
    metric: str = Query("", description="rate, latency_mean, latency_p50, latency_p99, latency_p999 or latency_max"),
    ignore: list[str] = Query([], description="factors in which matched workloads may differ"),  # noqa: B008
) -> HttpResponse:
    """One to eight products: the workloads that they share, ratios to the baseline, and conclusions."""
    asked = read_asked(product, baseline=baseline, metric=metric, ignored=ignore)
    if asked is None:
        raise BenchRefused("bench_no_product", "product: write kind:name, for example model:INTEL SSDPF2KX038TZ.")
    return json_of(answer(side_by_side(asked)))
