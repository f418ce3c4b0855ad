"""A plan in the editor: a draft from a document or a form, as form data, and kept in the session."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Concatenate, NamedTuple, ParamSpec

import msgspec
from django.contrib import messages
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase

from webapp.core.throttle import address_of, may_keep_draft
from webapp.plans.document import (
    MAX_BUDGET,
    MAX_SPREAD,
    MAX_STOP_AFTER,
    Order,
    PartStream,
    PlanDocument,
    budget_text,
    read_budget,
)
from webapp.plans.factors import by_cost
from webapp.plans.grids import FieldProblem, PartGrid, document_problems, grids_of
from webapp.plans.streams import StreamRefused, lines_of, streams_of
from webapp.plans.values import ValueRefused

# A plan in the editor. Every field is the text in the form, so invalid input is not lost.
#
#     PlanDocument ── draft_of ──► Draft ── checked ──► PlanDocument, or problems with their fields
#     POST of the form ── draft_from ──►
#
# Opening and saving a plan gives the same document. Rows are in the plan's `sequence`, then by cost. The order of
# rows becomes the new `sequence` only if a person has moved a row.

# Drafts kept in the session: input from before a log-in, and imported files.
#
# The editor shows a kept draft once, when it is next opened. Django keeps the session's data during a log-in.

P = ParamSpec("P")
_KEY = "plan_draft"
MAX_BYTES = 300_000  # the largest plan file as form data
KEPT_WITHOUT_LOG_IN_S = 3600
_BACK = "Your entries were restored. The plan is not saved yet."


def keep(request: HttpRequest, path: str, data: QueryDict, message: str) -> None:
    """Keep a draft for the next GET of `path`, unless it is too large."""
    text = data.urlencode()
    if len(text) <= MAX_BYTES:
        request.session[_KEY] = {"path": path, "data": text, "message": message}


def take_draft(request: HttpRequest) -> QueryDict | None:
    """Remove and return this page's draft with its message."""
    stored = request.session.get(_KEY)
    if not isinstance(stored, dict) or stored.get("path") != request.path:
        return None
    del request.session[_KEY]
    messages.info(request, str(stored["message"]))
    return QueryDict(str(stored["data"]))


def keeps_draft(
    view: Callable[Concatenate[HttpRequest, P], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """Keep the form of a person whose session has ended until the next log-in.

    Nobody knows who it is, so drafts without a log-in are few for each address, and kept for an hour.
    """

    @functools.wraps(view)
    def keeping(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if request.method == "POST" and not request.user.is_authenticated and "do" not in request.POST:
            _keep_without_log_in(request)
        return view(request, *args, **kwargs)

    return keeping


def _keep_without_log_in(request: HttpRequest) -> None:
    if may_keep_draft(address=address_of(request)):
        keep(request, request.path, request.POST, _BACK)
        request.session.set_expiry(KEPT_WITHOUT_LOG_IN_S)


COMMON = "common"
MAX_ROWS = 200


@dataclass(frozen=True)
class FactorRow:
    factor: str
    levels: str


@dataclass(frozen=True)
class DraftPart:
    name: str
    on: tuple[str, ...]
    rows: tuple[FactorRow, ...]
    rules: str = ""  # one per line
    before: str = ""  # steps, one per line
    streams: str = ""  # one per line, see `plans.streams`


@dataclass(frozen=True)
class Draft:
    title: str
    question: str
    note: str
    repeats: str
    spread_percent: str
    decide_percent: str
    decide: str  # factors, with commas
    repeats_min: str
    goal: str
    budget: str
    order: str
    retries: str
    stop_after: str
    drop_caches: bool
    common: tuple[FactorRow, ...]
    parts: tuple[DraftPart, ...]
    sequence: tuple[str, ...] = ()  # the order when the plan was opened
    version: str = "1"


def draft_of(document: PlanDocument) -> Draft:
    return Draft(
        title=document.title,
        question=document.question,
        note=document.note,
        repeats=str(document.repeats),
        spread_percent=str(document.spread_percent),
        decide_percent=str(document.decide_percent),
        decide=", ".join(document.decide),
        repeats_min=str(document.repeats_min),
        goal=document.goal,
        budget=budget_text(document) or "0",
        order=document.order.value,
        retries=str(document.retries),
        stop_after=str(document.stop_after),
        drop_caches=document.drop_caches,
        common=_rows(document.common, document.sequence),
        parts=tuple(
            DraftPart(
                part.name,
                part.on,
                _rows(part.factors, document.sequence),
                "\n".join(part.rules),
                "\n".join(part.before),
                lines_of(part.streams),
            )
            for part in document.parts
        ),
        sequence=document.sequence,
        version=str(document.version),
    )


def _rows(factors: dict[str, str], sequence: Sequence[str]) -> tuple[FactorRow, ...]:
    return tuple(FactorRow(name, factors[name]) for name in _ordered(list(factors), sequence))


def _ordered(names: Sequence[str], sequence: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*(name for name in sequence if name in names), *by_cost(names)]))


def draft_from(data: QueryDict) -> Draft:
    """The draft from a form: the order of fields is the order on the page. Browsers send line ends as CR LF."""
    return Draft(
        title=data.get("title", ""),
        question=data.get("question", ""),
        note=data.get("note", "").replace("\r\n", "\n"),
        repeats=data.get("repeats", ""),
        spread_percent=data.get("spread_percent", "0"),
        decide_percent=data.get("decide_percent", "0"),
        decide=data.get("decide", ""),
        repeats_min=data.get("repeats_min", "3"),
        goal=data.get("goal", ""),
        budget=data.get("budget", "0"),
        order=data.get("order", ""),
        retries=data.get("retries", ""),
        stop_after=data.get("stop_after", ""),
        drop_caches="drop_caches" in data,
        common=_typed_rows(data, COMMON),
        parts=tuple(
            DraftPart(
                data.get(f"{key}.name", ""),
                tuple(data.getlist(f"{key}.on")),
                _typed_rows(data, key),
                data.get(f"{key}.rules", "").replace("\r\n", "\n"),
                data.get(f"{key}.before", "").replace("\r\n", "\n"),
                data.get(f"{key}.streams", "").replace("\r\n", "\n"),
            )
            for key in data.getlist("part")[:MAX_ROWS]
        ),
        sequence=tuple(name for name in data.get("sequence", "").split(",") if name),
        version=data.get("version", "1"),
    )


def _typed_rows(data: QueryDict, key: str) -> tuple[FactorRow, ...]:
    pairs = zip(data.getlist(f"{key}.factor"), data.getlist(f"{key}.levels"), strict=False)
    return tuple(FactorRow(factor, levels) for factor, levels in pairs)[:MAX_ROWS]


class Checked(NamedTuple):
    """A draft as a document with its grids, and all problems of the input. `converted` is None if a field has the wrong
    form."""

    converted: PlanDocument | None
    problems: tuple[FieldProblem, ...]
    grids: tuple[PartGrid, ...] = ()

    @property
    def document(self) -> PlanDocument | None:
        """To be saved."""
        return None if self.problems else self.converted

    @property
    def previewed(self) -> PlanDocument | None:
        """A preview needs no title."""
        return None if any(problem.place != "title" for problem in self.problems) else self.converted


def checked(draft: Draft) -> Checked:
    """The document, and all problems of the input."""
    problems = [
        *_number(draft.repeats, "repeats", 1, 100),
        *_number(draft.spread_percent, "spread_percent", 0, MAX_SPREAD),
        *_number(draft.decide_percent, "decide_percent", 0, MAX_SPREAD),
        *_number(draft.repeats_min, "repeats_min", 2, 100),
        *_budget_problems(draft.budget),
        *_number(draft.retries, "retries", 0, 5),
        *_number(draft.stop_after, "stop_after", 0, MAX_STOP_AFTER),
        *_row_problems(draft),
        *_stream_problems(draft),
    ]
    plain = _plain(draft)
    try:
        document = msgspec.convert(plain, PlanDocument, strict=False)
    except msgspec.ValidationError as error:
        return Checked(None, tuple(problems) or (_unfit(error),))
    known, grids = {problem.place for problem in problems}, grids_of(document)
    problems += [problem for problem in document_problems(document, grids) if problem.place not in known]
    return Checked(document, tuple(problems), grids)


def _unfit(error: msgspec.ValidationError) -> FieldProblem:
    place = next((name for name in ("title", "question", "note") if f"$.{name}" in str(error)), "")
    return FieldProblem(place, f"This is not a valid plan: {error}.")


def _number(text: str, place: str, low: int, high: int) -> list[FieldProblem]:
    if text.strip().isdecimal() and low <= int(text.strip()[:9]) <= high:
        return []
    return [FieldProblem(place, f"Enter a whole number from {low} to {high}.")]


def _budget_problems(text: str) -> list[FieldProblem]:
    try:
        trials = read_budget(text).get("budget", 0)
    except ValueRefused as refused:
        return [FieldProblem("budget", f"{refused}.")]
    return _number(str(trials), "budget", 0, MAX_BUDGET)


def _row_problems(draft: Draft) -> list[FieldProblem]:
    problems = [] if draft.parts else [FieldProblem("", "A plan needs at least one part: add one.")]
    places = [(COMMON, draft.common), *((f"parts.{n}.factors", part.rows) for n, part in enumerate(draft.parts))]
    for place, rows in places:
        names = [row.factor for row in rows if row.factor]
        problems += [FieldProblem(f"{place}.{name}", "This factor appears twice: remove one row.")
                  for name in dict.fromkeys(names) if names.count(name) > 1]  # fmt: skip
        problems += [_incomplete(place, row) for row in rows if bool(row.factor) != bool(row.levels.strip())]
    return problems


def _stream_problems(draft: Draft) -> list[FieldProblem]:
    return [problem for number, part in enumerate(draft.parts) for problem in _streams(number, part)[1]]


def _streams(number: int, part: DraftPart) -> tuple[list[dict[str, object]], list[FieldProblem]]:
    """The streams of a part; none if their text is invalid."""
    place = f"parts.{number}.streams"
    try:
        read = streams_of(part.streams)
        msgspec.convert(read, tuple[PartStream, ...])
    except (StreamRefused, msgspec.ValidationError) as error:
        return [], [FieldProblem(place, str(error))]
    return read, []


def _incomplete(place: str, row: FactorRow) -> FieldProblem:
    if not row.factor:
        return FieldProblem(f"{place}.", "Choose the factor of these levels, or remove the row.")
    return FieldProblem(f"{place}.{row.factor}", "Enter at least one level, or remove the row.")


def _plain(draft: Draft) -> dict[str, object]:
    """The draft as JSON; invalid numbers are replaced, because they are separate problems."""
    return {
        "title": draft.title or " ",
        "question": draft.question.strip(),
        "note": draft.note,
        "repeats": draft.repeats.strip() if not _number(draft.repeats, "", 1, 100) else 1,
        "spread_percent": draft.spread_percent.strip() if not _number(draft.spread_percent, "", 0, MAX_SPREAD) else 0,
        "decide_percent": draft.decide_percent.strip() if not _number(draft.decide_percent, "", 0, MAX_SPREAD) else 0,
        "decide": [name.strip() for name in draft.decide.split(",") if name.strip()],
        "repeats_min": draft.repeats_min.strip() if not _number(draft.repeats_min, "", 2, 100) else 3,
        "goal": draft.goal.strip(),
        **({} if any(_budget_problems(draft.budget)) else read_budget(draft.budget)),
        "retries": draft.retries.strip() if not _number(draft.retries, "", 0, 5) else 1,
        "stop_after": draft.stop_after.strip() if not _number(draft.stop_after, "", 0, MAX_STOP_AFTER) else 0,
        "order": draft.order if draft.order in set(Order) else Order.RANDOMISED.value,
        "drop_caches": draft.drop_caches,
        "common": _factors(draft.common),
        "parts": [
            {
                "name": part.name or " ",
                "on": list(part.on),
                "factors": _factors(part.rows),
                "rules": _lines(part.rules),
                "before": _lines(part.before),
                "streams": _streams(number, part)[0],
            }
            for number, part in enumerate(draft.parts)
        ],
        "sequence": list(_sequence(draft)),
        "version": draft.version if draft.version.lstrip("-").isdecimal() else 1,
    }


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _factors(rows: Sequence[FactorRow]) -> dict[str, str]:
    return {row.factor: row.levels for row in rows if row.factor and row.levels.strip()}


def _sequence(draft: Draft) -> tuple[str, ...]:
    """The unchanged sequence if no row was moved; else the order of the rows, common rows before those of parts."""
    blocks = [[row.factor for row in rows if row.factor] for rows in (draft.common, *(p.rows for p in draft.parts))]
    if all(block == _ordered(block, draft.sequence) for block in map(list, map(dict.fromkeys, blocks))):
        return draft.sequence
    return tuple(dict.fromkeys(name for block in blocks for name in block))


_TEXTS = (
    "title", "question", "note", "repeats", "spread_percent", "decide_percent", "decide", "repeats_min", "goal",
    "budget", "order", "retries", "stop_after", "version",
)  # fmt: skip


def data_of(draft: Draft) -> QueryDict:
    data = QueryDict(mutable=True)
    for name in _TEXTS:
        data[name] = getattr(draft, name)
    data["sequence"] = ",".join(draft.sequence)
    if draft.drop_caches:
        data["drop_caches"] = "on"
    _add_rows(data, COMMON, draft.common)
    for number, part in enumerate(draft.parts):
        key = f"p{number}"
        data.appendlist("part", key)
        data[f"{key}.name"] = part.name
        data.setlist(f"{key}.on", list(part.on))
        data[f"{key}.rules"] = part.rules
        data[f"{key}.streams"] = part.streams
        data[f"{key}.before"] = part.before
        _add_rows(data, key, part.rows)
    return data


def _add_rows(data: QueryDict, key: str, rows: tuple[FactorRow, ...]) -> None:
    for row in rows:
        data.appendlist(f"{key}.factor", row.factor)
        data.appendlist(f"{key}.levels", row.levels)
