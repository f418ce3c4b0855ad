"""The plans of the campaign: settings on the drives; overwritten partitions; files, steps, streams and a database on
the small disks; the same on all hosts at once. Trials of 1 s."""

from typing import TYPE_CHECKING

from dev.faults.host import CONTROLLER_SETTING, PARTITION
from webapp.plans.document import Part, PartStream, PlanDocument

if TYPE_CHECKING:
    from webapp.plans.expand import PlannedTrial
    from webapp.plans.models import PlanVersion
    from webapp.runs.models import Run

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
        Part(
            name=PARTITION,
            on=("block",),
            before=("write 1x sequential 128k",),
            factors={"pattern": "randwrite"},
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


def start(number: int, seed: int) -> "Run":
    """The run of a round, on all targets. Every third round has hosts at once, and no partition."""
    from webapp.hosts.models import Target
    from webapp.runs.services import StartOptions, start_run

    document = HOST_BY_HOST if number % 3 else HOSTS_AT_ONCE
    targets = list(Target.objects.filter(in_policy=True, present=True))
    partitions = {str(target.pk): target for target in targets if target.slug == PARTITION}
    if document is HOSTS_AT_ONCE:
        targets = [target for target in targets if str(target.pk) not in partitions]

    def is_wanted(trial: "PlannedTrial") -> bool:
        """Only the part that overwrites uses partitions, and it uses no drive."""
        return trial.kind != "block" or (trial.part == PARTITION) == (trial.target_id in partitions)

    return start_run(
        version=_version(document), targets=targets, by=None, seed=seed,
        armed=[target.arming_serial for target in partitions.values()], options=StartOptions(keep=is_wanted),
    )  # fmt: skip


def _version(document: PlanDocument) -> "PlanVersion":
    """Created at the first call."""
    from webapp.plans.models import PlanVersion
    from webapp.plans.services import create_plan

    known = PlanVersion.objects.filter(plan__title=document.title).first()
    return known or create_plan(document=document, by=None).versions.get()
