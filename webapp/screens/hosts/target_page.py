"""The page of a target: its properties, settings by hand, and purges."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse

from webapp.bench.products import Kind, Product
from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.hosts.inventory.endurance import (
    WARRANTY_YEARS,
    endurance_of,
    forget_endurance,
    rate_endurance,
    restore_endurance,
)
from webapp.hosts.inventory.lock_groups import sharing
from webapp.hosts.models import EnduranceRating, Host, Target
from webapp.plans.factors import FACTORS, PURGE_LABELS
from webapp.runs.actions.host_actions import purge_drive, set_by_hand, settable, setting_by_hand, stop_purge
from webapp.runs.models import Attempt, HostAction
from webapp.runs.selectors import phase_sentence
from webapp.screens.access import operator_action, page, person
from webapp.screens.arming import drives_to_arm
from webapp.screens.bench.product_parts import product_parts
from webapp.screens.hosts.presence import host_or_404
from webapp.screens.hosts.views import active_attempt
from webapp.screens.undo import with_undo
from worker.contract.inventory import STOPPABLE, PurgeMethod
from worker.contract.workload import TargetKind

ACTIONS_SHOWN = 20
_RATING = "endurance rating"  # salt of the signature
# How these commands were tested, if not on a real drive; see docs/how-to/purging.md.
EMULATED, NOWHERE = "tested on an emulated drive, not on real hardware", "not tested on real hardware"
TRIED: dict[str, str] = {PurgeMethod.DISCARD: "", PurgeMethod.NVME_FORMAT: EMULATED}


@dataclass(frozen=True)
class Offer:
    """A way to purge the drive."""

    method: str
    label: str
    problem: str
    untried: str  # "" if none is needed
    stoppable: bool


@dataclass(frozen=True)
class PurgeRow:
    """A requested purge and its outcome."""

    action: HostAction
    label: str
    outcome: str  # the current phase, or the reason of a failure
    verified: str

    @property
    def under_way(self) -> bool:
        return self.action.attempt.ended_at is None

    @property
    def stoppable(self) -> bool:
        return self.action.purge in STOPPABLE


def _target(slug: str, name: str) -> Target:
    host = host_or_404(slug)
    target = Target.objects.select_related("host").filter(host=host, slug=name).order_by("-in_policy").first()
    if target is None:
        raise Http404(f"{host} has no target {name}.")
    return target


def _offers(target: Target) -> list[Offer]:
    problems = {offer["method"]: offer.get("problem", "") for offer in target.purges}
    return [
        Offer(name, PURGE_LABELS.get(name, name), problem, TRIED.get(name, NOWHERE), name in STOPPABLE)
        for name, problem in problems.items()
    ]


def _rows(target: Target) -> list[PurgeRow]:
    actions = HostAction.objects.filter(target=target).exclude(purge="").select_related("attempt", "by")[:ACTIONS_SHOWN]
    return [
        PurgeRow(
            action,
            PURGE_LABELS.get(action.purge, action.purge),
            _outcome(action.attempt),
            _verified(action.attempt),
        )
        for action in actions
    ]


def _outcome(attempt: Attempt) -> str:
    return attempt.outcome if attempt.ended_at else phase_sentence(attempt) or "order sent"


def _verified(attempt: Attempt) -> str:
    """The samples read after the purge, and what the method promises."""
    if not attempt.purged:
        return ""
    purge_result = attempt.purged[-1]
    other, count = purge_result["samples_not_zero"], purge_result["samples"]
    read = f"{count} samples read as zeros" if not other else f"{other} of {count} samples are not zeros"
    promise = {True: "as the method promises", False: "which the method does not promise"}.get(
        purge_result["zeros_promised"]
    )
    return f"{read}, {promise}" if promise else f"{read}; the method promises nothing about zeros"


def _setting_rows(target: Target) -> list[HostAction]:
    """Settings read, set and restored by hand, newest first."""
    actions = HostAction.objects.filter(target=target).exclude(setting="").select_related("attempt", "by")
    return list(actions.prefetch_related("attempt__setting_changes")[:ACTIONS_SHOWN])


def _purge_refusal(target: Target, offers: Sequence[Offer]) -> str:
    """Why the page has no form for a purge; "" if it has one."""
    if target.kind != TargetKind.BLOCK:
        return f"Only block devices can be purged; this is a {target.kind}."
    if not target.destroy:
        return (
            f"The policy of {target.host} does not allow overwriting this drive. Its administrator can set "
            "destroy = true for it."
        )
    return "" if offers else "The host has not reported the purge methods of this drive yet. Wait for its registration."


def _why_no_purge(user: User, offers: Iterable[Offer]) -> str:
    """Why this person cannot send the form now; "" if they can."""
    if not user.is_operator:
        return "Purging requires the operator role."
    usable = any(not offer.problem for offer in offers)
    return "" if usable else "No purge method is available for this drive now."


@dataclass(frozen=True)
class Allowed:
    """What the policy allows. `destroys` is not empty if data on the drive may be overwritten, and says which."""

    plain: str  # read, write files
    destroys: str
    limit_bytes: int | None  # written in one run


def _allowed(target: Target) -> Allowed:
    plain, destroys = "read, write files", ""
    if target.kind == TargetKind.BLOCK:
        plain = "read, write" if target.destroy else "read"
        also = f", or one with {', '.join(target.destroy_signatures)}" if target.destroy_signatures else ""
        destroys = f"{'an' if also else 'only an'} empty drive{also}" if target.destroy else ""
    elif target.kind == TargetKind.SLOT:
        plain, destroys = "build virtual drives", "the drive in the slot"
    return Allowed(plain, destroys, target.max_write_bytes)


def _state(target: Target) -> str:
    """Whether it can be used now; else why not."""
    if not target.in_policy:
        return "no longer in the policy"
    return "usable" if target.present else target.problem or "not there"


@page
def target_page(request: HttpRequest, slug: str, target: str) -> HttpResponse:
    return _show(request, _target(slug, target))


def _show(request: HttpRequest, target: Target, *, problem: str = "", refused: str = "") -> HttpResponse:
    host: Host = target.host
    offers = _offers(target)
    context = {
        "host": host,
        "target": target,
        "drives": drives_to_arm([target]),
        "shares": sharing([target]).get(target.pk, []),
        "offers": offers,
        "purge_refusal": _purge_refusal(target, offers),
        "why_no_purge": _why_no_purge(person(request), offers),
        "allowed": _allowed(target),
        "state": _state(target),
        "rows": _rows(target),
        "active": active_attempt(host),
        "why_not": problem,
        "refused": refused,
        "settable": [(name, FACTORS[name].label if name in FACTORS else name) for name in settable(target)],
        "by_hand": set_by_hand(target),
        "setting_rows": _setting_rows(target),
        "given": request.POST,
        "endurance": endurance_of([target])[target.pk],
        "parts": product_parts(Product(Kind.TARGET, str(target))),
    }
    return render(request, "screens/target.html", context, status=422 if problem else 200)


@operator_action
def purge(request: HttpRequest, slug: str, target: str) -> HttpResponse:
    drive = _target(slug, target)
    given = request.POST
    try:
        purge_drive(
            target=drive, method=given.get("method", ""), serial=given.get("serial", "").strip(),
            why=given.get("why", ""), by=person(request),
        )  # fmt: skip
    except Refusal as refusal:
        return _show(request, drive, problem=refusal.message, refused="purge")
    messages.success(request, f"The purge of {drive} has started. Reload this page to see its progress.")
    return redirect("host_target", slug=drive.host.slug, target=drive.slug)


@operator_action
def stop(request: HttpRequest, slug: str, target: str, action: int) -> HttpResponse:
    drive = _target(slug, target)
    purge_action = get_object_or_404(HostAction.objects.exclude(purge=""), pk=action, target=drive)
    try:
        stop_purge(action=purge_action, by=person(request))
    except Refusal as refusal:
        return _show(request, drive, problem=refusal.message, refused="stop")
    messages.success(request, f"The purge of {drive} stops after the current piece. Reload this page to see where.")
    return redirect("host_target", slug=drive.host.slug, target=drive.slug)


@operator_action
def setting(request: HttpRequest, slug: str, target: str) -> HttpResponse:
    """`operation`: read, set or restore."""
    drive, given = _target(slug, target), request.POST
    try:
        setting_by_hand(
            target=drive,
            name=given.get("name", ""),
            operation=given.get("operation", ""),
            value=given.get("value", ""),
            why=given.get("why", ""),
            by=person(request),
        )
    except Refusal as refusal:
        return _show(request, drive, problem=refusal.message, refused="setting")
    messages.success(request, f"The order is sent to {drive.host}. Reload this page to see the result.")
    return redirect("host_target", slug=drive.host.slug, target=drive.slug)


@operator_action
def endurance(request: HttpRequest, slug: str, target: str) -> HttpResponse:
    """`do`: enter, forget or restore. `unit` of `amount`: tbw or dwpd. `rating` to restore: from the Undo button."""
    drive, given = _target(slug, target), request.POST
    before = EnduranceRating.objects.filter(target=drive).first()
    if given.get("do") == "restore":
        return _restore_endurance(request, drive)
    if given.get("do") == "forget":
        forget_endurance(target=drive, by=person(request))
        messages.success(request, _undoing(request, f"The rated endurance of {drive} is deleted.", before))
        return redirect("host_target", slug=drive.host.slug, target=drive.slug)
    amount, years = _number(given.get("amount", "")), _number(given.get("years", "")) or WARRANTY_YEARS
    tbw, dwpd = (amount, None) if given.get("unit") == "tbw" else (None, amount)
    try:
        rate_endurance(
            target=drive, by=person(request), source=given.get("source", ""), tbw_tb=tbw, dwpd=dwpd, years=years
        )
    except Refusal as refusal:
        return _show(request, drive, problem=refusal.message, refused="endurance")
    messages.success(request, _undoing(request, f"The rated endurance of {drive} is saved.", before))
    return redirect("host_target", slug=drive.host.slug, target=drive.slug)


def _undoing(request: HttpRequest, words: str, before: EnduranceRating | None) -> str:
    """The rating before is signed: a form cannot express its basis, such as DWPD of a size."""
    if before is None:
        return words
    rating = signing.dumps([str(before.target_id), before.rated_bytes, before.basis, before.source], salt=_RATING)
    undo = reverse("host_endurance", args=[before.target.host.slug, before.target.slug])
    return with_undo(request, words, undo, given=[("do", "restore"), ("rating", rating)])


def _restore_endurance(request: HttpRequest, target: Target) -> HttpResponse:
    try:
        of, rated_bytes, basis, source = signing.loads(request.POST.get("rating", ""), salt=_RATING)
    except signing.BadSignature:
        of = ""
    if of == str(target.pk):
        restore_endurance(target=target, rated_bytes=rated_bytes, basis=basis, source=source, by=person(request))
        messages.success(request, f"The rated endurance of {target} is restored.")
    else:
        messages.error(request, f"This is not a former rating of {target}. Enter the rating again.")
    return redirect("host_target", slug=target.host.slug, target=target.slug)


def _number(text: str) -> float | None:
    try:
        return float(text.strip().replace(",", "."))
    except ValueError:
        return None
