"""The editor of plans, with a live preview."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar
from urllib.parse import urlencode

import msgspec
from django.contrib import messages
from django.db.models import Case, When
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse

from webapp.core.errors import Refusal
from webapp.hosts.models import Target
from webapp.plans.document import Part, PlanDocument, read
from webapp.plans.engines import ENGINE, ENGINES, engine_name
from webapp.plans.factor_warnings import factor_warnings
from webapp.plans.factors import ALTERNATIVES, FACTORS, Factor, FactorKind
from webapp.plans.grids import FieldProblem, PartGrid, PlanRefused
from webapp.plans.models import PlanVersion
from webapp.plans.part_levels import NAMED_KINDS
from webapp.plans.services import create_plan, save_version
from webapp.plans.values import BlockSplit, Choice, Duration, LayoutLine, Size, Switch
from webapp.runs.models import Run
from webapp.screens.access import operator_action, own_action, page, person
from webapp.screens.arming import TargetsForm, usable_targets
from webapp.screens.plans.draft import (
    COMMON,
    MAX_ROWS,
    Checked,
    Draft,
    DraftPart,
    FactorRow,
    checked,
    draft_from,
    draft_of,
    keeps_draft,
    take_draft,
)
from webapp.screens.plans.library import version_or_404
from webapp.screens.plans.previewing import PlanAnswer, PlanProblem, ShownPreview, preview_request, shown_preview
from worker.contract.workload import TargetKind

# The editor's fields for the template: rows with labels, help, choices and problems.

_KINDS = {TargetKind.BLOCK: "block devices", TargetKind.DIRECTORY: "directories", TargetKind.FILE: "files"}
_OFTEN = {
    "scheduler": ("none", "mq-deadline", "kyber", "bfq"),
    "rq_affinity": ("0", "1", "2"),
    "nomerges": ("0", "1", "2"),
}
_GROUPS = {
    FactorKind.WORKLOAD: "Workload",
    FactorKind.STOPPING: "Workload",
    FactorKind.OPTION: "Further options of fio",
    FactorKind.PROCESS: "Processes of the engine",
    FactorKind.TARGETS: "Several targets",
    FactorKind.STREAMS: "Several streams",
    FactorKind.LAYOUT: "Layout of a pool's drives",
    FactorKind.DRIVE: "Drive preparation",
    FactorKind.SETTING: "Settings of the host",
}


@dataclass(frozen=True)
class Row:
    place: str  # id of its problem
    factor: str
    label: str
    known: bool
    levels: str
    choices: tuple[tuple[str, str], ...]  # level and label of each option; () if levels are typed
    hint: str
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Block:
    """The common factors or one part. `key` is the prefix of its field names."""

    key: str
    place: str
    index: str  # its name in `steps`
    says: str  # description of the rows, for labels
    name: str
    kinds: tuple[tuple[str, str, bool], ...]  # value, text, ticked
    rows: tuple[Row, ...]
    problems: tuple[str, ...]
    name_problems: tuple[str, ...]
    on_problems: tuple[str, ...]
    warnings: tuple[str, ...]
    rules: str = ""
    rules_problems: tuple[str, ...] = ()
    streams: str = ""
    streams_problems: tuple[str, ...] = ()
    before: str = ""
    before_problems: tuple[str, ...] = ()

    @property
    def offered(self) -> list[tuple[str, str]]:
        """Names and labels of the common factors that it does not have."""
        present = {row.factor for row in self.rows}
        return [(name, FACTORS[name].label) for name in OFFERED if name not in present]


@dataclass(frozen=True)
class EditorForm:
    draft: Draft
    common: Block
    parts: tuple[Block, ...]
    problems: Mapping[str, tuple[str, ...]]

    @property
    def whole(self) -> tuple[str, ...]:
        """Problems of the plan as a whole, and the number of fields with problems."""
        return self.problems.get("", ())

    @property
    def count(self) -> int:
        return sum(len(messages) for messages in self.problems.values())


_OF_STREAM = re.compile(r"^(parts\.\d+\.streams)\..*")  # all streams of a part have one field
Messages = Mapping[str, tuple[str, ...]]  # by place


def editor_form(
    draft: Draft, problems: Iterable[FieldProblem] = (), warnings: Iterable[FieldProblem] = ()
) -> EditorForm:
    errors, warned = _by_place(problems), _by_place(warnings)
    rows = _editor_form_rows(COMMON, draft.common, errors, warned)
    common = Block(COMMON, COMMON, COMMON, "of all parts", "", (), rows, (), (), (), ())
    parts = tuple(_part(n, part, errors, warned) for n, part in enumerate(draft.parts))
    return EditorForm(draft, common, parts, errors)


def _by_place(problems: Iterable[FieldProblem]) -> Messages:
    by_place: dict[str, tuple[str, ...]] = {}
    for problem in problems:
        place = _OF_STREAM.sub(r"\1", problem.place)
        by_place[place] = (*by_place.get(place, ()), problem.message)
    return by_place


def _part(number: int, part: DraftPart, errors: Messages, warned: Messages) -> Block:
    place = f"parts.{number}"
    return Block(
        key=f"p{number}",
        place=place,
        index=str(number),
        says=f"of part {number + 1}",
        name=part.name,
        kinds=_kinds(part.on),
        rows=_editor_form_rows(f"{place}.factors", part.rows, errors, warned),
        problems=errors.get(place, ()),
        name_problems=errors.get(f"{place}.name", ()),
        on_problems=errors.get(f"{place}.on", ()),
        warnings=warned.get(place, ()),
        rules=part.rules,
        rules_problems=errors.get(f"{place}.rules", ()),
        streams=part.streams,
        streams_problems=errors.get(f"{place}.streams", ()),
        before=part.before,
        before_problems=errors.get(f"{place}.before", ()),
    )


def _kinds(on: Sequence[str]) -> tuple[tuple[str, str, bool], ...]:
    """Kinds of target, ticked ones first and in their order, so that saving keeps it; also unknown kinds."""
    words_of = {kind.value: words for kind, words in _KINDS.items()}
    ticked = [(kind, words_of.get(kind, kind), True) for kind in on]
    return (*ticked, *((kind.value, words, False) for kind, words in _KINDS.items() if kind not in on))


def _editor_form_rows(place: str, rows: Sequence[FactorRow], errors: Messages, warned: Messages) -> tuple[Row, ...]:
    return tuple(_row(f"{place}.{row.factor}", row, errors, warned) for row in rows)


def _row(place: str, row: FactorRow, errors: Messages, warned: Messages) -> Row:
    known = FACTORS.get(row.factor)
    return Row(
        place=place,
        factor=row.factor,
        label=known.label if known else row.factor or "no factor yet",
        known=known is not None or not row.factor,
        levels=row.levels,
        choices=choices(known) if known else (),
        hint=hint(known) if known else "",
        problems=errors.get(place, ()),
        warnings=warned.get(place, ()),
    )


def choices(factor: Factor) -> tuple[tuple[str, str], ...]:
    """Each level in its typed form, with a label. Only labels of engines differ from it."""
    if factor.name == ENGINE:
        return tuple((name, engine.LABEL) for name, engine in ENGINES.items())
    if isinstance(factor.values, Choice):
        return tuple((name, name) for name in factor.values.names)
    names = ("on", "off") if isinstance(factor.values, Switch) else _OFTEN.get(factor.name, ())
    return tuple((name, name) for name in names)


def hint(factor: Factor) -> str:
    """Help: unit, meaning and notation of levels."""
    written = _written(factor)
    parts = (factor.unit and f"in {factor.unit}", factor.help, written and f"e.g. {written}")
    return " · ".join(text for text in parts if text)


def _written(factor: Factor) -> str:
    if choices(factor):
        return ""  # shown beside the field
    if isinstance(factor.values, Size):
        return "4k · 4k, 1M · 512..4M *2"
    if isinstance(factor.values, Duration):
        return "10s · 5m · 1h"
    if isinstance(factor.values, LayoutLine):
        return (
            "single / xfs noatime · raid0 x1..8 chunk 64k / xfs|ext4 · 2 arrays of raid5 x4 chunk 64k / lvm stripe 256k"
        )
    if isinstance(factor.values, BlockSplit):
        return "4k/60:8k/40"
    return "1, 10, 40 · 1..64 *2 · 10..100 +10" if factor.numeric else ""


# Offered as buttons: the factors that most built-in plans and published tests vary or set. The others are searched.
OFFERED = (
    "pattern", "block_size", "iodepth", "numjobs", "ioengine", "direct", "read_percent", "size", "runtime", "ramp",
    "scheduler", "read_ahead_kb",
)  # fmt: skip


def picker() -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Groups of factors to choose from: name, label with unit, help."""
    return [
        (
            words,
            [
                (f.name, f"{f.label} ({f.unit})" if f.unit and not f.label.endswith(")") else f.label, f.help)
                for f in FACTORS.values()
                if f.kind is kind
            ],
        )
        for kind, words in _GROUPS.items()
    ]


# Steps of the editor's buttons: add, remove, move. They are the same with and without a script.
#
# A button sends its step as `do`:  add:<block>   add:<block>:<factor>   remove:<block>:<row>
# move:<block>:<from>:<to> add-part   remove-part:<n>   move-part:<from>:<to>   — a block is `common` or the number of
# a part; all count from 0.

T = TypeVar("T")
MAX_STEP_LENGTH = 100  # `int` refuses texts of thousands of digits


def stepped(draft: Draft, step: str, factor: str = "") -> Draft:
    """The draft after the step; unchanged if the step is invalid. `factor` is the factor to add."""
    what, *where = step[:MAX_STEP_LENGTH].split(":")
    numbers = [int(text) for text in where if text.isdecimal()]
    if what == "add-part":
        return replace(draft, parts=(*draft.parts, _new_part(draft))[:50])
    if what == "remove-part" and numbers:
        return replace(draft, parts=_without(draft.parts, numbers[0]))
    if what == "move-part" and len(numbers) == 2:
        return replace(draft, parts=_moved(draft.parts, *numbers))
    if where and what in ("add", "remove", "move"):
        numbers = [int(text) for text in where[1:] if text.isdecimal()]
        return _in_block(draft, where[0], what, numbers, named(where[1] if len(where) > 1 else factor))
    return draft


def named(text: str) -> str:
    """The name of a factor from its name or label, as typed; "" if there is none."""
    words = text.strip().casefold()
    return next((name for name, factor in FACTORS.items() if words in (name, factor.label.casefold())), "")


def _in_block(draft: Draft, block: str, what: str, numbers: Sequence[int], factor: str) -> Draft:
    if block == COMMON:
        return replace(draft, common=_rows(draft.common, what, numbers, factor))
    if not block.isdecimal() or int(block) >= len(draft.parts):
        return draft
    parts = list(draft.parts)
    part = parts[int(block)]
    parts[int(block)] = replace(part, rows=_rows(part.rows, what, numbers, factor))
    return replace(draft, parts=tuple(parts))


def _rows(rows: tuple[FactorRow, ...], what: str, numbers: Sequence[int], factor: str) -> tuple[FactorRow, ...]:
    if what == "add":
        return (*rows, new_row(factor))[:MAX_ROWS]
    if what == "remove" and numbers:
        return _without(rows, numbers[0])
    return _moved(rows, numbers[0], numbers[1]) if what == "move" and len(numbers) == 2 else rows


def new_row(factor: str) -> FactorRow:
    """A new row with the factor's example, or its default."""
    known = FACTORS.get(factor)
    if known is None:
        return FactorRow("", "")
    plain = "" if known.default is None else known.values.write(known.default)
    return FactorRow(factor, known.example or plain)


def _new_part(draft: Draft) -> DraftPart:
    names = {part.name for part in draft.parts}
    name = next(f"Part {n}" for n in range(len(names) + 1, len(names) * 2 + 3) if f"Part {n}" not in names)
    common = {row.factor: row.levels for row in draft.common}
    engine = ENGINES[engine_name(common)]
    stated = set(common) | {other for pair in ALTERNATIVES if {*pair} & set(common) for other in pair}
    others = [factor for factor in engine.NAMED_BY if factor != engine.REQUIRED]
    return DraftPart(
        name, NAMED_KINDS, tuple(new_row(factor) for factor in (engine.REQUIRED, *others[:1]) if factor not in stated)
    )


def _without(items: tuple[T, ...], place: int) -> tuple[T, ...]:
    return tuple(item for at, item in enumerate(items) if at != place)


def _moved(items: tuple[T, ...], before: int, after: int) -> tuple[T, ...]:
    if not (0 <= before < len(items) and 0 <= after < len(items)):
        return items
    rest = list(_without(items, before))
    rest.insert(after, items[before])
    return tuple(rest)


BEGINNING = PlanDocument(
    title="New plan",
    common={"ioengine": "io_uring", "size": "1G", "runtime": "10s"},
    parts=(Part(name="Main", factors={"pattern": "randread, randwrite", "block_size": "4k", "iodepth": "1, 32"}),),
)


def new_plan(request: HttpRequest) -> HttpResponseBase:
    return save_new_plan(request) if request.method == "POST" else show_new_plan(request)


def edit_plan(request: HttpRequest, slug: str) -> HttpResponseBase:
    return save_edited_plan(request, slug) if request.method == "POST" else show_edited_plan(request, slug)


@page
def show_new_plan(request: HttpRequest) -> HttpResponse:
    data = take_draft(request)
    if data is not None:
        return _editor(request, draft_from(data), data, None, check=True, unsaved=True)
    draft = msgspec.structs.replace(BEGINNING, title="")
    return _editor(request, draft_of(draft), request.GET, None)


@page
def show_edited_plan(request: HttpRequest, slug: str) -> HttpResponse:
    version = version_or_404(slug)
    if version.plan.builtin or version.plan.deleted_at:
        why = "is built in and cannot be changed: copy it and change the copy" if version.plan.builtin else "is deleted"
        messages.info(request, f"{version.plan.title} {why}.")
        return redirect("plan", slug=slug)
    data = take_draft(request)
    if data is not None:
        return _editor(request, draft_from(data), data, version, check=True, unsaved=True)
    return _editor(request, draft_of(read(version.document)), request.GET, version)


@keeps_draft
@operator_action
def save_new_plan(request: HttpRequest) -> HttpResponse:
    draft = draft_from(request.POST)
    if "do" in request.POST:
        return _step(request, draft, None)
    read_draft = checked(draft)
    document = read_draft.document
    if document is None:
        return _refused(request, draft, None, read_draft.problems)
    try:
        plan = create_plan(document=document, by=person(request))
    except Refusal as refusal:
        return _refused(request, draft, None, _said(refusal))
    messages.success(
        request, f"{plan.title} is saved. {'Start it' if _tried_on(request) else 'Choose where to run it'}."
    )
    return _to_plan(request, plan.slug)


@keeps_draft
@operator_action
def save_edited_plan(request: HttpRequest, slug: str) -> HttpResponse:
    version, draft = version_or_404(slug), draft_from(request.POST)
    if "do" in request.POST:
        return _step(request, draft, version)
    read_draft = checked(draft)
    document = read_draft.document
    if document is None:
        return _refused(request, draft, version, read_draft.problems)
    base = request.POST.get("base", "")
    try:
        saved = save_version(
            plan=version.plan, document=document, by=person(request), base=int(base[:9]) if base.isdecimal() else None
        )
    except Refusal as refusal:
        again = version.number if refusal.code == "plan_changed" else None
        return _refused(request, draft, version, _said(refusal), base=again)
    if saved.number == version.number:
        messages.info(request, f"Nothing was changed: version {saved.number} has the same content.")
    else:
        messages.success(request, f"Saved as version {saved.number}.")
    return _to_plan(request, slug)


def _tried_on(request: HttpRequest) -> list[str]:
    return [str(target.id) for target in _targets(request.POST, None, None)] if "targets-asked" in request.POST else []


def _to_plan(request: HttpRequest, slug: str) -> HttpResponse:
    """The plan's page, with the targets of the preview."""
    query = urlencode([("target", id) for id in _tried_on(request)])
    return redirect(reverse("plan", kwargs={"slug": slug}) + (f"?{query}" if query else ""))


def _said(refusal: Refusal) -> tuple[FieldProblem, ...]:
    return refusal.problems if isinstance(refusal, PlanRefused) else (FieldProblem("", refusal.message),)


def _step(request: HttpRequest, draft: Draft, version: PlanVersion | None) -> HttpResponse:
    """A button other than “Save”: add, remove, move, or preview."""
    step = request.POST["do"]
    block = step.partition(":")[2]
    draft = stepped(draft, step, request.POST.get(f"add-{block}", ""))
    return _editor(
        request,
        draft,
        request.POST,
        version,
        check=step.partition(":")[0] in ("preview", "page", "trial"),
        unsaved=True,
    )


def _refused(
    request: HttpRequest,
    draft: Draft,
    version: PlanVersion | None,
    problems: tuple[FieldProblem, ...],
    base: int | None = None,
) -> HttpResponse:
    """`base`: the version that another person saved meanwhile; the next save creates the version after it."""
    return _editor(request, draft, request.POST, version, problems=problems, unsaved=True, base=base)


def _editor(
    request: HttpRequest,
    draft: Draft,
    data: QueryDict,
    version: PlanVersion | None,
    *,
    check: bool = False,
    problems: tuple[FieldProblem, ...] = (),
    unsaved: bool = False,
    base: int | None = None,
) -> HttpResponse:
    """The page; with `check`, it shows problems before the first save."""
    read_draft = checked(draft)
    targets = _targets(data, version, read_draft.grids)
    preview = _preview(read_draft, targets, data)
    context = {
        "plan": version.plan if version else None,
        "version": version,
        "base": base or data.get("base") or (version.number if version else ""),
        "form": editor_form(draft, problems or (read_draft.problems if check else ()), preview.warnings),
        "picker": picker(),
        "targets": usable_targets(),
        "chosen": {target.id for target in targets},
        "wanted": preview_request(data),
        "unsaved": unsaved,
        "understood": preview.understood,
        "shown": preview.shown,
    }
    return render(request, "screens/plan_editor.html", context)


def _targets(data: QueryDict, version: PlanVersion | None, grids: Sequence[PartGrid] | None) -> list[Target]:
    """The chosen targets; by default those of the plan's last run, else one target on which the plan can run."""
    if "target" in data or "targets-asked" in data:
        form = TargetsForm(data)
        return list(form.cleaned_data["target"]) if form.is_valid() else []
    last = Run.objects.filter(version__plan=version.plan).order_by("-number").first() if version else None
    if last:
        return list(usable_targets().filter(runs=last))
    possible = usable_targets()
    if grids:
        possible = possible.filter(kind__in={kind for grid in grids for kind in grid.kinds})
    return list(possible.order_by(Case(When(kind=TargetKind.DIRECTORY, then=0), default=1), "host__slug")[:1])


class _Preview(NamedTuple):
    understood: bool  # the draft has no problems
    shown: ShownPreview | None  # None without a target
    warnings: tuple[FieldProblem, ...]


def _preview(draft: Checked, targets: Sequence[Target], data: QueryDict) -> _Preview:
    document = draft.previewed
    if document is None:
        return _Preview(understood=False, shown=None, warnings=())
    if not targets:
        return _Preview(understood=True, shown=None, warnings=factor_warnings(document, grids=draft.grids))
    shown = shown_preview(document, targets, preview_request(data), draft.grids)
    return _Preview(understood=True, shown=shown, warnings=shown.preview.factor_warnings)


@own_action
def preview_plan(request: HttpRequest) -> HttpResponse:
    """JSON: the problems by field, and the preview as HTML. Changes nothing."""
    draft = checked(draft_from(request.POST))
    made = _preview(draft, _targets(request.POST, None, draft.grids), request.POST)
    # msgspec takes plain text only, and a SafeString plus a plain one is plain
    html = render_to_string("screens/parts/plan_preview.html", made._asdict(), request) + "" if made.understood else ""
    answer = PlanAnswer(
        problems=_payload(draft.problems),
        warnings=_payload(made.warnings),
        html=html,
        said=_in_short(made.shown, len(draft.problems)),
    )
    return HttpResponse(msgspec.json.encode(answer), content_type="application/json")


def _payload(problems: Sequence[FieldProblem]) -> tuple[PlanProblem, ...]:
    return tuple(PlanProblem(place=problem.place, message=problem.message) for problem in problems)


def _in_short(shown: ShownPreview | None, problems: int) -> str:
    if shown is not None:
        return f"{shown.preview.estimate.trials} trials"
    to_correct = "Correct 1 field" if problems == 1 else f"Correct {problems} fields"
    return to_correct if problems else "No target is chosen"
