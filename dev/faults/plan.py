"""The plan of the campaign: settings on the drives, files on the small disks, trials of 1 s."""

from typing import TYPE_CHECKING

from dev.faults.host import CONTROLLER_SETTING
from webapp.plans.document import Part, PlanDocument

if TYPE_CHECKING:
    from webapp.plans.models import PlanVersion

DOCUMENT = PlanDocument(
    title="Faults",
    common={"runtime": "1s", "block_size": "4k", "iodepth": "4"},
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
        Part(name="files", on=("directory",), factors={"pattern": "randread, randwrite", "size": "8m"}),
    ),
    repeats=1,
    retries=5,
    stop_after=0,
)


def version() -> "PlanVersion":
    """The version of the plan, created at the first call."""
    from webapp.plans.models import PlanVersion
    from webapp.plans.services import create_plan

    known = PlanVersion.objects.filter(plan__title=DOCUMENT.title).first()
    return known or create_plan(document=DOCUMENT, by=None).versions.get()
