"""Rows of everything that an address can name, and what stands for each parameter of an address."""

import zlib
from datetime import time

from webapp.analysis.answer import Finding, FindingKind, Sentence
from webapp.analysis.import_findings import Conclusions, Section, findings_in, store
from webapp.analysis.run_answer import run_answer
from webapp.analysis.services import create_link, save_comparison
from webapp.core import health
from webapp.core.models import ApiToken, Role, User
from webapp.core.people import invite_user, password_link
from webapp.core.services import create_api_token
from webapp.hosts.groups import MemberSpec, create_group
from webapp.hosts.installer import client_wheel, worker_wheel
from webapp.hosts.maintenance_windows import add_weekly_window
from webapp.hosts.models import EnrolmentToken, Target
from webapp.hosts.services import issue_enrolment_token
from webapp.notices.models import Channel, Event, Notice, NoticeState, Subscription
from webapp.notices.services import send_test
from webapp.notices.webhook import sealed
from webapp.plans.models import Plan, PlanVersion
from webapp.results.models import StreamRun
from webapp.runs.models import Run
from webapp.schedules.models import Occurrence
from webapp.schedules.services import make_due
from webapp.tests.factories.hosts import a_host, an_inventory, storage1_drive, storage1_scratch
from webapp.tests.factories.imports import LOG, an_import
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.results import finish_run, finish_trial
from webapp.tests.factories.runs import fail_trial, first_look_run, start_trial
from webapp.tests.factories.schedules import a_schedule
from webapp.trends.services import set_baseline

ADMIN, OPERATOR, VIEWER = "anna", "olga", "vera"
ROLES = {ADMIN: Role.ADMIN, OPERATOR: Role.OPERATOR, VIEWER: Role.VIEWER}


def make_people() -> dict[str, User]:
    return {name: a_user(name, role) for name, role in ROLES.items()}


def make_samples() -> dict[str, object]:
    """One of everything, with runs that are done, running and failed in parts; values by `area/parameter`."""
    people = make_people()
    host = a_host("storage1")
    an_inventory(host)
    purges = [{"method": "discard", "problem": ""}, {"method": "ata_secure_erase", "problem": "It is frozen."}]
    target, drive = storage1_scratch(host), storage1_drive(host, purges=purges)
    issue_enrolment_token(by=people[ADMIN], slug="storage2")
    enrolment = EnrolmentToken.objects.get()
    version = first_look()
    Plan.objects.filter(pk=first_look(slug="built-in").plan_id).update(builtin="first-look")
    done = first_look_run(version, [target], by=people[OPERATOR], note="Before the firmware update")
    finish_run(done)
    stream = StreamRun.objects.get(attempt__trial=done.trials.get(index=0))
    attachment = stream.attachments.create(
        name="fio.json", media_type="application/json", compressed=zlib.compress(b"{}")
    )
    _make_running(version, drive, people[OPERATOR])
    schedule = a_schedule(people[OPERATOR], name="nightly", version=version, targets=[target])
    make_due(schedule=schedule, by=people[OPERATOR])
    for name in (*health.NEEDED, health.BEAT):
        health.note(name)
    create_api_token(user=people[VIEWER], name="nightly job")
    token = ApiToken.objects.get()
    invited = invite_user(username="ingo", role=Role.VIEWER, by=people[ADMIN])
    _, _, uidb64, link, _ = password_link(user=invited, by=people[ADMIN]).split("/")
    notice = make_notice(people[ADMIN])
    group = create_group(title="Both racks", members=[MemberSpec(host.slug, [target.slug])], by=people[OPERATOR])
    window = add_weekly_window(
        host=host, days=[6], opens=time(2), closes=time(4), zone="UTC", note="Backups", by=people[OPERATOR]
    )
    saved = save_comparison(title="Engines", note="", query="x=iodepth", by=people[OPERATOR])
    shared = create_link(saved=saved, name="a customer", by=people[OPERATOR])
    baseline = set_baseline(run=done, target=target, tolerances={"iops": 5.0}, by=people[OPERATOR])
    imported = an_import(by=people[OPERATOR], further=[LOG])
    finding = Finding(kind=FindingKind.TREND, **Sentence(("IOPS rise",)).texts, single=True, size=1.0)
    section = Section(title="Table", query=f"import={imported.number}", findings=(finding,), sentences=())
    conclusions = Conclusions(sections=(section,))
    store(imported, conclusions, seal="")
    return {
        "baselines/pk": baseline.pk,
        "trends/pk": baseline.pk,
        "people/pk": people[VIEWER].pk,
        "people/token": token.pk,
        "account/token": token.pk,
        "set-password/uidb64": uidb64,
        "set-password/token": link,
        "worker/version": worker_wheel().version,
        "worker/name": worker_wheel().filename,
        "simple/name": client_wheel().filename,
        "hosts/slug": host.slug,
        "hosts/target": drive.slug,
        "hosts/action": 1,
        "hosts/reference": enrolment.reference,
        "hosts/window_id": window.pk,
        "products/kind": "model",
        "products/value": target.model,
        "groups/slug": group.slug,
        "enrolments/reference": enrolment.reference,
        "plans/slug": version.plan.slug,
        "plans/number": version.number,
        "runs/number": done.number,
        "notices/pk": notice.subscription_id,
        "notices/delivery": notice.pk,
        "runs/trial": 1,
        "runs/action": "tag",
        "runs/note_id": 1,
        "runs/key": run_answer(done).findings[0].key,
        "runs/attachment": attachment.pk,
        "queue/number": done.number,
        "imports/number": imported.number,
        "imports/key": findings_in(conclusions, imported.number)[0].key,
        "imports/test": 4,  # that of the log
        "comparisons/pk": saved.pk,
        "comparisons/link": saved.links.get().pk,
        "shared/token": shared,
        "schedules/key": schedule.pk,
        "schedules/pk": schedule.pk,
        "schedules/occurrence": Occurrence.objects.get().pk,
        "trials/trial_id": done.trials.get(index=0).pk,
    }


def make_notice(user: User) -> Notice:
    """A webhook of this person, with one delivery that failed."""
    subscription = Subscription.objects.create(
        user=user, channel=Channel.WEBHOOK, url="https://hooks.example/sweetspot", secret=sealed("a secret"),
        events=[Event.ENDED, Event.FAILED],
    )  # fmt: skip
    send_test(subscription=subscription)
    notice = Notice.objects.get(subscription=subscription)
    notice.state, notice.tries, notice.last_error = NoticeState.FAILED, 3, "The receiver answered 404."
    notice.save()
    return notice


def _make_running(version: PlanVersion, target: Target, by: User) -> Run:
    """One trial done, one failed, one running."""
    run = first_look_run(version, [target], by=by, repeats=1)
    first, second, third = run.trials.order_by("index")[:3]
    finish_trial(first)
    fail_trial(second)
    start_trial(third)
    return run
