"""Comparisons, saved comparisons, and Bench."""

from datetime import datetime
from typing import Literal

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Field, Query, Router, Schema, Status
from ninja.pagination import paginate

from webapp.analysis.answer import Comparison, comparison_table
from webapp.analysis.comparing import compare
from webapp.analysis.dimensions import ATTRIBUTES, LAYOUT_PARTS
from webapp.analysis.models import SavedComparison
from webapp.analysis.question import read_query
from webapp.analysis.services import (
    MAX_NOTE,
    MAX_QUERY,
    MAX_TITLE,
    change_comparison,
    copy_comparison,
    delete_comparison,
    restore_comparison,
    save_comparison,
)
from webapp.analysis.trial_metrics import COMPARED
from webapp.api.common.authentication import OPERATORS, operator
from webapp.api.common.schemas import PARQUET, Input, Paged, json_of, schema_of
from webapp.api.results import FILTERS, asked_pairs
from webapp.bench.answer import BenchAnswer
from webapp.bench.assembly import bench_answer
from webapp.bench.products import BenchRefused
from webapp.bench.rankings.answer import RankingAnswer
from webapp.bench.rankings.answer import answer as ranking_answer
from webapp.bench.rankings.catalogue import Origins
from webapp.bench.rankings.question import CHOICES as RANKED_BY
from webapp.bench.rankings.question import KEYS, LISTS, USE_CASES, Ranked, read_question
from webapp.bench.rankings.ranking import rank
from webapp.bench.saved import checked_query
from webapp.bench.side_by_side import read_selection
from webapp.bench.workloads import CHOICES
from webapp.core.errors import NotFound
from webapp.core.table_files import file_response

# Saved comparisons: the question with its title and note. Asked by sending `query` to /compare, or to /bench if it
# names products.

router = Router(tags=["compare"])


class SavedOut(Schema):
    id: int
    title: str
    note: str
    query: str
    owner: str | None
    created_at: datetime
    changed_at: datetime
    deleted_at: datetime | None

    @staticmethod
    def resolve_owner(saved: SavedComparison) -> str | None:
        return saved.owner.username if saved.owner else None


class NewSaved(Input):
    """`query` as in the address of Explore or Bench, or of `GET /compare`, without `?`."""

    title: str = Field(max_length=MAX_TITLE)
    note: str = Field("", max_length=MAX_NOTE)
    query: str = Field(max_length=MAX_QUERY)


class ChangedSaved(Input):
    """What is left out stays as it is."""

    title: str | None = Field(None, max_length=MAX_TITLE)
    note: str | None = Field(None, max_length=MAX_NOTE)
    query: str | None = Field(None, max_length=MAX_QUERY)


def _saved(pk: int) -> SavedComparison:
    comparison = SavedComparison.objects.select_related("owner").filter(pk=pk).first()
    if comparison is None:
        raise NotFound("comparison_unknown", f"There is no saved comparison {pk}.")
    return comparison


@router.get("/comparisons", response=list[SavedOut])
@paginate(Paged)
def comparisons(request: HttpRequest, show: Literal["all", "own", "deleted"] = "all") -> QuerySet[SavedComparison]:
    """Last changed first."""
    saved_comparisons = SavedComparison.objects.select_related("owner").filter(deleted_at__isnull=show != "deleted")
    return saved_comparisons.filter(owner_id=request.user.pk) if show == "own" else saved_comparisons


@router.post("/comparisons", response={201: SavedOut}, auth=OPERATORS)
def save(request: HttpRequest, body: NewSaved) -> Status[SavedComparison]:
    """Save a comparison."""
    by = operator(request)
    return Status(201, save_comparison(title=body.title, note=body.note, query=body.query, by=by, check=checked_query))


@router.get("/comparisons/{pk}", response=SavedOut)
def saved_comparison(request: HttpRequest, pk: int) -> SavedComparison:
    """Also one that is deleted."""
    return _saved(pk)


@router.post("/comparisons/{pk}", response=SavedOut, auth=OPERATORS)
def change(request: HttpRequest, pk: int, body: ChangedSaved) -> SavedComparison:
    """One's own; an admin everybody's."""
    by, saved = operator(request), _saved(pk)
    fields = {name: getattr(saved, name) for name in ("title", "note", "query")}
    return change_comparison(saved=saved, by=by, check=checked_query, **(fields | body.dict(exclude_none=True)))


@router.post("/comparisons/{pk}/copy", response={201: SavedOut}, auth=OPERATORS)
def copy(request: HttpRequest, pk: int) -> Status[SavedComparison]:
    """Anybody's, as one's own."""
    by = operator(request)
    return Status(201, copy_comparison(saved=_saved(pk), by=by))


@router.delete("/comparisons/{pk}", response={204: None}, auth=OPERATORS)
def delete(request: HttpRequest, pk: int) -> Status[None]:
    """One's own; an admin everybody's. Can be brought back. Safe to repeat."""
    by = operator(request)
    delete_comparison(saved=_saved(pk), by=by)
    return Status(204, None)


@router.post("/comparisons/{pk}/undelete", response=SavedOut, auth=OPERATORS)
def undelete(request: HttpRequest, pk: int) -> SavedComparison:
    """Safe to repeat."""
    by = operator(request)
    restore_comparison(saved=_saved(pk), by=by)
    return _saved(pk)


# Bench: products side by side.

_KINDS = "model, serial, controller, host, target, layout, configuration, import, run"


class BenchIn(Schema):
    product: list[str] = Field(description=f"kind:name, repeated, at most eight; kinds are {_KINDS}")
    baseline: str = Field("", description="one of the products; default: the first")
    metric: str = Field("", description=f"one of {', '.join(CHOICES)}")
    ignore: list[str] = Field(
        [],
        description="factors, or labels as label:fill level, in which matched workloads may differ, repeated",
    )
    hold: list[str] = Field(
        [],
        description="factor:level, for example scheduler:none: only results at this level, set or observed, repeated",
    )


@router.get("/bench", tags=["bench"], response=schema_of(BenchAnswer))
def bench(request: HttpRequest, query: Query[BenchIn]) -> HttpResponse:
    """Products side by side: the workloads that they share, ratios to the baseline, and conclusions."""
    read = read_selection(
        query.product,
        baseline=query.baseline,
        metric=query.metric,
        ignored=query.ignore,
        held=query.hold,
    )
    if read is None:
        raise BenchRefused("bench_no_product", "product: write kind:name, for example model:INTEL SSDPF2KX038TZ.")
    return json_of(bench_answer(read))


class RankingIn(Schema):
    rank: str = Field("", description=f"what is ranked: {', '.join(Ranked)}; default: drive")
    pattern: str = Field("", description="of fio, as in a plan; default: what most drives have")
    block_size: str = Field("", description="in bytes; the nearest measured one is taken")
    iodepth: str = Field("", description="queue depth; the nearest measured load is taken")
    numjobs: str = Field("", description="jobs of fio")
    metric: str = Field("", description=f"one of {', '.join(RANKED_BY)}")
    hosts: str = Field("", description="apart (default): what is in different hosts is ranked apart; together")
    source: str = Field("", description=f"one of {', '.join(Origins)}; default: all")
    model: list[str] = Field([], description="only these drive models, repeated")
    controller: list[str] = Field([], description="only these controllers, repeated")
    layout: list[str] = Field([], description="only these layouts, repeated")
    host: list[str] = Field([], description="only these hosts, repeated")
    tool: list[str] = Field([], description="only results of these tools, repeated")
    use: str = Field("", description=f"use case of the scores: {', '.join(USE_CASES)}; default: database")
    weight: list[str] = Field([], description="a weight from 0 to 100 for each part of the use case, in its order")
    base: str = Field("", description="the product with the score 100, as in `product` of an entry; default: the best")


@router.get("/rankings", tags=["bench"], response=schema_of(RankingAnswer))
def rankings(request: HttpRequest, query: Query[RankingIn]) -> HttpResponse:
    """All drives, controllers, hosts or layouts at one workload, the best first, and scores of a use case."""
    single = {key: getattr(query, key) for key in KEYS}
    return json_of(ranking_answer(rank(read_question(single, {key: getattr(query, key) for key in LISTS}))))


_PARAMETERS: list[dict[str, object]] = [
    {"name": name, "in": "query", "required": name == "x", "schema": {"type": "string"}, "description": text}
    for name, text in (
        (
            "x",
            f"a factor, {', '.join(ATTRIBUTES)}, {', '.join(LAYOUT_PARTS)}, or fact.<name>; or matched: everything "
            "that varies beside series and panel, so that only equals are compared",
        ),
        ("series", "up to three of the same, comma-separated: each combination is a series"),
        ("panel", "one of the same: a chart for each of its levels"),
        (
            "metric",
            f"{', '.join(COMPARED)}, or the key of values that a person entered or a tool stated",
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
