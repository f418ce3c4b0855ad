"""Plans and points."""

import itertools

from webapp.plans.document import Part, PlanDocument, write
from webapp.plans.models import Plan, PlanVersion
from webapp.plans.points import applicable, with_defaults
from webapp.plans.values import Value

DOCUMENT = PlanDocument(
    title="A plan",
    common={"size": "64m", "runtime": "3"},
    parts=(Part(name="random", factors={"pattern": "randread", "block_size": "4k", "iodepth": "1, 32"}),),
    repeats=2,
)
FIRST_LOOK = PlanDocument(
    title="First look",
    note="What this storage does out of the box, and what io_uring brings.",
    common={"ioengine": "io_uring, psync", "sync_depth": "threads", "direct": "on", "size": "1g", "runtime": "3"},
    parts=(
        Part(name="random", factors={"pattern": "randread, randwrite", "block_size": "4k", "iodepth": "1, 32"}),
        Part(name="sequential", factors={"pattern": "read, write", "block_size": "128k", "iodepth": "8"}),
    ),
)
_numbers = itertools.count(1)


def a_version(document: PlanDocument = DOCUMENT, slug: str = "") -> PlanVersion:
    """The next version of the plan with this slug, which is new if it is not there."""
    plan, _ = Plan.objects.get_or_create(slug=slug or f"plan{next(_numbers)}", defaults={"title": document.title})
    return PlanVersion.objects.create(plan=plan, number=plan.versions.count() + 1, document=write(document))


def a_point(**levels: Value) -> dict[str, Value]:
    grid = with_defaults({"pattern": ("randread",), "size": (2**20,)}, drop_caches=False)
    plain = {name: values[0] for name, values in grid.items()}
    return applicable(plain | levels)


def first_look(document: PlanDocument = FIRST_LOOK, slug: str = "first-look") -> PlanVersion:
    """The next version of the plan First look, or of another plan of its kind."""
    return a_version(document, slug)
