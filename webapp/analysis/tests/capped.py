"""A run at a known limit."""

from django.utils import timezone

from webapp.runs.models import Run
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.results import Lab

CAPPED = {1: 458.0, 2: 919.0, 4: 1820.0, 8: 2000.0, 16: 2000.0, 32: 2000.0}


def a_capped_run(number: int = 1, *, repeats: int = 1, lab: Lab | None = None, **changes: object) -> Run:
    """A drive that is capped at 2,000 IOPS, over 1 to 32 jobs."""
    lab = lab or Lab(a_target(a_host(f"h{number}"), "loop0"), number=number)
    for jobs, iops in CAPPED.items():
        lab.measure(*(iops,) * repeats, numjobs=jobs)
    Run.objects.filter(pk=lab.run.pk).update(ended_at=timezone.now(), **changes)
    lab.run.refresh_from_db()
    return lab.run
