"""What notices announce: ends of runs, and hosts that are absent. The periodic task is safe to run twice, also at the
same time."""

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Count, F
from django.utils import timezone

from webapp.analysis.answer import FindingKind
from webapp.analysis.reviews import answer_of
from webapp.analysis.run_answer import RunAnswer
from webapp.analysis.verdicts import Outcome
from webapp.celery import app
from webapp.core import health
from webapp.core.formatting import duration
from webapp.core.windows import viewers_time
from webapp.hosts.maintenance_windows import open_windows
from webapp.hosts.models import Host, HostState
from webapp.hosts.sessions import HEARD_WITHIN
from webapp.notices import delivery
from webapp.notices.delivery import send_due
from webapp.notices.models import Event
from webapp.notices.services import announce
from webapp.runs.models import Run, RunState, TrialState
from webapp.trends.selectors import Verdict, verdicts_on

# Queues notices about ended runs, once for each run.

log = logging.getLogger(__name__)

MAX_AT_ONCE = 100
FINDINGS = 3  # in a notice


def announce_ended_runs() -> None:
    """Announce all ended runs. If one fails, the others are still announced, and the next tick tries it again."""
    waiting = Run.objects.filter(ended_at__isnull=False, announced_at=None).order_by("ended_at")
    for run_id in list(waiting.values_list("pk", flat=True)[:MAX_AT_ONCE]):
        try:
            announce_run(run_id)
        except Exception:
            log.exception("run %s was not announced; the next tick tries again.", run_id)


@transaction.atomic
def announce_run(run_id: UUID) -> bool:
    """Queue the run's notices. False if they were queued before."""
    if Run.objects.filter(pk=run_id, announced_at=None).update(announced_at=timezone.now()) != 1:
        return False
    run = Run.objects.select_related("version__plan").get(pk=run_id)
    counts = _counts(run)
    event = Event.FAILED if run.state == RunState.FAILED else Event.ENDED
    hosts = list(run.trials.order_by("host__slug").values_list("host__slug", flat=True).distinct())
    announce(
        event=event,
        plan=run.version.plan,
        key=f"run:{run.number}:{event}",
        subject=f"Run {run.number} of {run.version.plan.title} {_outcome(run, counts)}",
        text=_text(run, counts, hosts),
        path=f"/runs/{run.number}/",
        detail=_detail(run, counts, hosts),
    )
    for verdict in verdicts_on(run):
        if verdict.outcome is Outcome.FAILS:
            _announce_worse(run, verdict)
    return True


def _announce_worse(run: Run, verdict: Verdict) -> None:
    baseline, failed = verdict.baseline, verdict.counts[Outcome.FAILS]
    against = f"{baseline.name}, the baseline of {run.version.plan.title} on {baseline.target}"
    rows = [row for row in verdict.rows if row.outcome is Outcome.FAILS]
    fails = "fails against" if all(row.single_values for row in rows) else "is worse than"
    announce(
        event=Event.WORSE,
        plan=run.version.plan,
        key=f"run:{run.number}:worse:{baseline.pk}",
        subject=f"Run {run.number} {fails} {against}",
        text=f"Run {run.number} {fails} {against}: {failed} of {len(verdict.rows)} rows fail.",
        path=f"/runs/{run.number}/",
        detail={
            "run": run.number,
            "baseline_run": baseline.run.number if baseline.run else None,
            "baseline_import": baseline.imported.number if baseline.imported else None,
            "target": str(baseline.target),
            "rows": {"total": len(verdict.rows), **{each.value: count for each, count in verdict.counts.items()}},
        },
    )


def _counts(run: Run) -> Counter[str]:
    return Counter(dict(run.trials.order_by().values_list("state").annotate(Count("pk"))))


def _outcome(run: Run, counts: Counter[str]) -> str:
    if run.state == RunState.FAILED:
        return "failed"
    if run.state == RunState.CANCELLED:
        return "was cancelled"
    failed = counts[TrialState.FAILED]
    return f"is done: {failed} of {run.trial_count} trials failed" if failed else "is done"


def _text(run: Run, counts: Counter[str], hosts: list[str]) -> str:
    done, failed, cancelled = (counts[state] for state in (TrialState.DONE, TrialState.FAILED, TrialState.CANCELLED))
    lines = [f"Run {run.number} of the plan {run.version.plan.title} {_outcome(run, counts)}.", ""]
    answer = answer_of(run)
    if answer.headline:
        lines.append(f"Result: {answer.headline}")
    lines += [f"Finding: {sentence}" for sentence in _news(answer) if sentence not in answer.headline]
    if run.reason:
        lines.append(f"Reason: {run.reason}")
    lines.append(f"Trials: {done} done, {failed} failed, {cancelled} cancelled of {run.trial_count}")
    lines.append(f"Hosts: {', '.join(hosts)}")
    if run.started_at and run.ended_at:
        lines.append(f"Started: {_moment(run.started_at)}")
        took = duration((run.ended_at - run.started_at).total_seconds())
        lines.append(f"Ended: {_moment(run.ended_at)}, after {took}")
    return "\n".join(lines)


def _news(answer: RunAnswer) -> list[str]:
    """The most important findings, without what a person has dismissed."""
    valid = [each for each in answer.findings if not each.is_dismissed]
    return [each.sentence for each in valid if each.kind is not FindingKind.UNCERTAIN][:FINDINGS]


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _detail(run: Run, counts: Counter[str], hosts: list[str]) -> dict[str, object]:
    ended = (TrialState.DONE, TrialState.FAILED, TrialState.CANCELLED)
    answer = answer_of(run)
    return {
        "run": run.number,
        "state": run.state,
        "reason_code": run.reason_code,
        "reason": run.reason,
        "headline": answer.headline,
        "findings": _news(answer),
        "trials": {"total": run.trial_count, **{state.value: counts[state] for state in ended}},
        "hosts": hosts,
        "started_at": run.started_at.isoformat() if run.started_at else None,
        "ended_at": run.ended_at.isoformat() if run.ended_at else None,
    }


# Announces once that a host is away, and once that it is back.
#
# heard ──► away   silent for AWAY_AFTER; not during maintenance, not if it is revoked
#       ◄── back   heard again
#
# If all hosts fall silent at once, the server may be the cause: one notice says so for all of them, and one when the
# server hears from a host again. The hosts of such an absence have the same `away_since`. It ends for all of them
# together; a host that stays silent is announced AWAY_AFTER later. After a time in which this task did not run, a
# notice says that the server itself was stopped.

AWAY_AFTER = timedelta(minutes=10)
# After a longer gap between two ticks, the server was away itself, and hears from its hosts only now.
GAP_LIMIT = timedelta(minutes=1)


class Watch:
    """How long the server has heard from its hosts, as far as this process knows."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self._since_s = self._last_s = -math.inf

    def tick(self) -> timedelta:
        """How long this process has ticked, since the last gap or `begin`."""
        with self._lock:
            now_s = self._clock_s()
            if now_s - self._last_s > GAP_LIMIT.total_seconds():
                self._since_s = now_s
            self._last_s = now_s
            return timedelta(seconds=now_s - self._since_s)

    def begin(self) -> None:
        """Hosts need time to report again from now on."""
        with self._lock:
            self._since_s = self._clock_s()


_watch = Watch()


def announce_absent_hosts(now: datetime, watch: Watch = _watch) -> None:
    watched = watch.tick()
    if not watched:
        _announce_own_absence(now)
    if _announce_back():
        watch.begin()
    elif watched >= AWAY_AFTER:
        _announce_away(now)


def _announce_own_absence(now: datetime) -> None:
    """If the last run of this task is long ago. Call it only after a gap: the clock may have jumped."""
    since = health.last(health.NOTICES)
    if since is None or now - since < AWAY_AFTER:
        return
    with transaction.atomic():
        _announce(
            since,
            [],
            away=False,
            subject=f"The server was stopped from {viewers_time(since)} to {viewers_time(now)}",
            text=f"Periodic tasks did not run for {duration((now - since).total_seconds())}: the server, its database, "
            "Redis or beat was stopped. Hosts were not watched in this time, and may have been unable to report.",
        )


def _announce_away(now: datetime) -> None:
    nearly = now - AWAY_AFTER + HEARD_WITHIN
    active = Host.objects.filter(state=HostState.ACTIVE, away_since=None, last_seen_at__lt=nearly)
    silent = list(active.order_by("last_seen_at"))
    in_maintenance = open_windows([host.pk for host in silent], now) if silent else {}
    silent = [host for host in silent if host.pk not in in_maintenance]
    at_once = _silent_at_once(silent, now)
    for hosts in [at_once, *([host] for host in silent if host not in at_once)]:
        if hosts and _heard(hosts[0]) < now - AWAY_AFTER:
            with transaction.atomic():
                # A host may be heard at this moment, and two processes may tick at once.
                changed = active.filter(pk__in=[host.pk for host in hosts]).update(away_since=_heard(hosts[-1]))
                if changed == len(hosts):
                    _announce_away_of(hosts, now)
                else:
                    transaction.set_rollback(True)


def _silent_at_once(silent: Sequence[Host], now: datetime) -> Sequence[Host]:
    """Several hosts that fell silent at the same time, if no other host was heard since. `silent`: longest first."""
    heard = Host.objects.filter(last_seen_at__gte=now - AWAY_AFTER + HEARD_WITHIN)
    hosts = [host for host in silent if _heard(host) >= _heard(silent[-1]) - HEARD_WITHIN]
    return hosts if len(hosts) > 1 and not heard.exists() else []


def _announce_away_of(hosts: Sequence[Host], now: datetime) -> None:
    since = _heard(hosts[-1])
    silent_for = duration((now - since).total_seconds())
    if len(hosts) == 1:
        (host,) = hosts
        subject = f"Host {host} is away"
        text = (
            f"The server has not heard from the host {host} for {silent_for}. Check its power, its network and its "
            "service sweetspot-worker. Runs on this host wait or fail."
        )
    else:
        subject = f"{len(hosts)} hosts are away at once since {viewers_time(since)}"
        text = (
            f"The server has heard from no host for {silent_for}, so the server itself, its network or Redis may be "
            f"the cause. Check these first. Runs on the hosts wait or fail. Hosts: {_listed(hosts)}."
        )
    _announce(since, hosts, away=True, subject=subject, text=text)


def _announce_back() -> bool:
    """Whether an absence of several hosts ended."""
    was_away = Host.objects.filter(away_since__isnull=False)
    was_away.filter(state=HostState.REVOKED).update(away_since=None)
    back = was_away.filter(last_seen_at__gt=F("away_since"))
    ended = False
    for since in list(back.order_by("away_since").values_list("away_since", flat=True).distinct()):
        with transaction.atomic():
            assert since
            hosts = list(was_away.filter(away_since=since).select_for_update(no_key=True))
            if was_away.filter(pk__in=[host.pk for host in hosts]).update(away_since=None):
                _announce_back_of(hosts, since)
                ended |= len(hosts) > 1
    return ended


def _announce_back_of(hosts: Sequence[Host], since: datetime) -> None:
    heard = min((host for host in hosts if _heard(host) > since), key=_heard)
    silent_for = duration((_heard(heard) - since).total_seconds())
    if len(hosts) == 1:
        subject = f"Host {heard} is back"
        text = f"The server hears from the host {heard} again, after {silent_for}."
    else:
        subject = f"{len(hosts)} hosts were away from {viewers_time(since)} to {viewers_time(_heard(heard))}"
        text = (
            f"The server heard from none of these hosts for {silent_for}. Then it heard from {heard}. The server "
            "itself, its network or Redis may have been the cause. A host that is still silent gets a notice of its "
            f"own after {AWAY_AFTER.total_seconds() / 60:.0f} min. Hosts: {_listed(hosts)}."
        )
    _announce(since, hosts, away=False, subject=subject, text=text)


def _announce(since: datetime, hosts: Sequence[Host], *, away: bool, subject: str, text: str) -> None:
    """`hosts`: none if the notice is about the server."""
    name = hosts[0].slug if len(hosts) == 1 else None
    about = f"host:{hosts[0].pk}" if name else f"{len(hosts)} hosts"
    announce(
        event=Event.AWAY,
        plan=None,
        key=f"{about}:{'away' if away else 'back'}:{since.isoformat()}",
        subject=subject,
        text=text,
        path=f"/hosts/{name}/" if name else "/hosts/",
        detail={"host": name, "hosts": [host.slug for host in hosts], "away": away, "last_seen_at": since.isoformat()},
    )


def _heard(host: Host) -> datetime:
    assert host.last_seen_at
    return host.last_seen_at


def _listed(hosts: Sequence[Host]) -> str:
    return ", ".join(sorted(host.slug for host in hosts))


@app.task(name="webapp.notices.tasks.tick")
def tick() -> None:
    """Every few seconds: announce ended runs and absent hosts, and send due notices."""
    for step in (announce_ended_runs, watch_hosts, note_heartbeat, deliver):
        try:
            step()
        except Exception:
            log.exception("%s failed; the next tick tries again.", step.__name__)


def watch_hosts() -> None:
    announce_absent_hosts(timezone.now())


def note_heartbeat() -> None:
    """After `watch_hosts`, which reads when the last tick was."""
    health.note(health.NOTICES)


def deliver() -> None:
    now = timezone.now()
    delivery.drop_unwanted(now)
    delivery.forget_old(now)
    send_due(now)
