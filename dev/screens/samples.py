"""Temporary objects for `make screens`, so that every page has a picture."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.urls import reverse

from dev.screens.variants import explore_variants, product_variants

if TYPE_CHECKING:
    from webapp.core.models import User

INVITED = "picture.of.a.link"
COMPARISON = "Engines on this machine"
SCHEDULE = "New Year check"
SIDE_BY_SIDE = ("mtron-raid0-12", "mtron-raid5-4", "x25-m-lvm-stripe")  # references with the same tests


@contextmanager
def temporary_samples(admin: "User") -> Iterator[tuple[dict[str, object], dict[str, str]]]:
    """Values by `area/parameter`, and paths by page name where these values do not apply, or of further pages.

    The values belong to the newest run that is done, or else to the newest run.
    """
    from webapp.analysis.models import SavedComparison
    from webapp.analysis.services import create_link, save_comparison
    from webapp.core.models import Role, User
    from webapp.core.people import invite_user, password_link
    from webapp.hosts.models import EnrolmentToken
    from webapp.hosts.services import issue_enrolment_token
    from webapp.plans.models import Plan
    from webapp.plans.services import copy_plan
    from webapp.runs.models import Run, RunState
    from webapp.schedules.models import Schedule, Trigger
    from webapp.schedules.services import ScheduleSpec, create_schedule
    from webapp.screens.outcome import outcome_of
    from webapp.tests.samples import make_notice
    from webapp.trends.models import Baseline
    from webapp.trends.selectors import judged_metrics
    from webapp.trends.services import set_baseline

    runs = Run.objects.select_related("version__plan").order_by("-number")
    run = runs.filter(state=RunState.DONE).first() or runs.first()
    issue_enrolment_token(by=admin, slug=INVITED.replace(".", "-"))
    enrolment = EnrolmentToken.objects.latest("pk")
    User.objects.filter(username=INVITED).delete()  # left by an interrupted call
    notice = make_notice(admin)
    Schedule.objects.filter(name=SCHEDULE).delete()
    invited = invite_user(username=INVITED, role=Role.VIEWER, by=admin)
    _, _, uidb64, link, _ = password_link(user=invited, by=admin).split("/")
    samples: dict[str, object] = {
        "people/pk": admin.pk,
        "notices/pk": notice.subscription_id,
        "runs/trial": 1,
        "plans/number": 1,
        "hosts/reference": enrolment.reference,
        "set-password/uidb64": uidb64,
        "set-password/token": link,
    }
    instead: dict[str, str] = {}
    copied: Plan | None = None
    saved: SavedComparison | None = None
    schedule: Schedule | None = None
    baseline: Baseline | None = None
    try:
        if run:
            target = run.targets.select_related("host").first()
            copied = copy_plan(version=run.version, by=admin)  # built-in plans cannot be edited
            query = outcome_of(run).url.partition("?")[2] or "x=iodepth"
            saved = save_comparison(title=COMPARISON, note="Taken with the plan First look.", query=query, by=admin)
            yearly = ScheduleSpec(
                name=SCHEDULE, version=run.version, targets=list(run.targets.all()), trigger=Trigger.CRON,
                cron="0 3 1 1 *", time_zone="Europe/Berlin",
            )  # fmt: skip
            schedule = create_schedule(spec=yearly, by=admin)
            samples |= {"runs/number": run.number, "comparisons/pk": saved.pk, "schedules/pk": schedule.pk}
            samples["shared/token"] = create_link(saved=saved, name=COMPARISON, by=admin)
            samples |= {"plans/slug": run.version.plan.slug, "plans/number": run.version.number}
            samples |= {"hosts/slug": target.host.slug, "hosts/target": target.slug} if target else {}
            samples |= {"products/kind": "model", "products/value": target.model} if target and target.model else {}
            if target and not Baseline.objects.filter(plan=run.version.plan, target=target).exists():
                tolerances = {metric.key: 10.0 for metric in judged_metrics(run, target)[:2]}
                baseline = set_baseline(run=run, target=target, tolerances=tolerances, by=admin)
            first = baseline or Baseline.objects.first()
            samples |= {"trends/pk": first.pk} if first else {}
            instead["edit_plan"] = reverse("edit_plan", kwargs={"slug": copied.slug})
            instead["explore"] = f"{reverse('explore')}?{query}"
            instead |= explore_variants(query) | product_variants(run)
        samples |= imported_pages()
        instead |= bench_page()
        yield samples, instead
    finally:
        if copied is not None:
            copied.versions.all().delete()  # no run uses them
        for made in (baseline, schedule, saved, copied):
            if made is not None:
                made.delete()
        notice.subscription.delete()
        EnrolmentToken.objects.filter(host_slug=enrolment.host_slug).delete()
        User.objects.filter(username=INVITED).delete()


def imported_pages() -> dict[str, object]:
    """The newest import with a time series, otherwise the newest own import, otherwise the newest reference."""
    from webapp.results.models import Import, Origin

    drawn = Origin.objects.exclude(series=None).select_related("imported").order_by("-pk").first()
    if drawn is not None:
        return {"imports/number": drawn.imported.number, "imports/test": drawn.number}
    newest = Import.objects.filter(slug=None).first() or Import.objects.first()
    return {"imports/number": newest.number} if newest else {}


def bench_page() -> dict[str, str]:
    """The address of Bench with references, as far as they are loaded."""
    from webapp.results.models import Import

    loaded = Import.objects.filter(slug__in=SIDE_BY_SIDE).order_by("slug").values_list("number", flat=True)
    products = "&".join(f"product=import:{number}" for number in loaded)
    return {"bench": f"{reverse('bench')}?{products}"} if products else {}
