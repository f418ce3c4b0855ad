"""Built-in plans that need md, LVM, a controller or poll queues, at small scale on the drives of the guest."""

from collections.abc import Sequence

from dev.console import say, step
from dev.lab import storcli
from dev.lab.storage_host import BAYS, FRONT, NVME, POOL, REAR
from dev.lab.system import System, layouts_built, locks, not_as_asked, not_done
from dev.presets.scaling import Scale, scaled
from webapp.plans.document import PlanDocument, import_plan
from webapp.plans.services import BUILTIN

SCALE = Scale(points=4)
CONTROLLER_CACHE = "controller-cache"
PLANS = {
    "raid-levels": (POOL,),
    "two-arrays": (FRONT, REAR),
    "rebuild-beside-clients": (POOL,),
    "strip-size": (POOL,),
    "stripes-over-arrays": (POOL,),
    "schedulers-and-file-systems": (POOL,),
    "drive-state": (POOL,),
    "interrupts": (BAYS[0],),
    CONTROLLER_CACHE: (BAYS[0],),
    "polled-completions": (NVME,),
    "nvme-passthrough": (NVME,),
}


def presets(system: System) -> list[str]:
    """The problems."""
    problems: list[str] = []
    for slug, targets in PLANS.items():
        if slug == CONTROLLER_CACHE:
            with storcli.installed(system):
                problems += [*_run(system, slug, targets), *storcli.problems(system.storage)]
        else:
            problems += _run(system, slug, targets)
    return [*problems, *system.storage.left_on_drives(), *locks()]


def documents() -> list[PlanDocument]:
    """All of PLANS, from their files."""
    return [_document(slug) for slug in PLANS]


def _document(slug: str) -> PlanDocument:
    return scaled(import_plan((BUILTIN / f"{slug}.yaml").read_text(encoding="utf-8")), SCALE)


def _run(system: System, slug: str, targets: Sequence[str]) -> list[str]:
    with step(slug):
        run = system.finish(system.start(_document(slug), *targets))
    done = run.trials.filter(state="done").count()
    say(f"    {slug}: {done} of {run.trial_count} trials, {len(layouts_built(run))} layouts")
    return [*not_done(run), *not_as_asked(run)]
