"""The plans of the campaign: settings and steps on the drives; files, streams and a database on the small disks; the
same on all hosts at once. Trials of 1 s."""

from typing import TYPE_CHECKING

from dev.faults.host import CONTROLLER_SETTING
from webapp.plans.document import Part, PartStream, PlanDocument

if TYPE_CHECKING:
    from webapp.plans.models import PlanVersion

COMMON = {"runtime": "1s", "block_size": "4k", "iodepth": "4"}
FILES = {"size": "8m"}
HOST_BY_HOST = PlanDocument(
    title="Faults",
    common=COMMON,
    parts=(
        Part(
            name="drive",
            on=("block",),
            factors={
                "pattern": "randread",
                "scheduler": "none, mq-deadline",
                "read_ahead_kb": "128, 512",
                "nr_requests": "64",
                CONTROLLER_SETTING: "write through",
            },
        ),
        Part(name="files", on=("directory",), factors=FILES | {"pattern": "randread, randwrite"}),
        Part(
            name="steps",
            on=("directory",),
            before=("write 4M random 4k", "flush"),
            factors=FILES | {"pattern": "randread"},
        ),
        Part(
            name="streams",
            on=("directory",),
            factors=FILES | {"streams": "alone, together"},
            streams=(
                PartStream(name="reader", factors={"pattern": "randread"}),
                PartStream(name="writer", factors={"pattern": "randwrite"}),
            ),
        ),
        Part(
            name="database",
            on=("directory",),
            factors={"engine": "pgbench", "script": "tpcb-like", "scale": "1", "max_wal_size": "64m"},
        ),
    ),
    repeats=1,
    retries=5,
    stop_after=0,
)
HOSTS_AT_ONCE = PlanDocument(
    title="Faults with hosts at once",
    common=COMMON | {"hosts_at_once": "1, 2"},
    parts=(
        Part(name="drives", on=("block",), factors={"pattern": "randread", "scheduler": "none, mq-deadline"}),
        Part(name="files", on=("directory",), factors=FILES | {"pattern": "randread, randwrite"}),
    ),
    repeats=1,
    retries=5,
    stop_after=0,
)


def version(number: int) -> "PlanVersion":
    """The version of the plan of a round, created at the first call. Every third round has hosts at once."""
    from webapp.plans.models import PlanVersion
    from webapp.plans.services import create_plan

    document = HOST_BY_HOST if number % 3 else HOSTS_AT_ONCE
    known = PlanVersion.objects.filter(plan__title=document.title).first()
    return known or create_plan(document=document, by=None).versions.get()
