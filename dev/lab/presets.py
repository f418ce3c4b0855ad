"""Built-in plans that need md, LVM or a controller, at small scale on the controller's drives."""

from dev.console import say, step
from dev.lab.storage_host import BAYS, POOL
from dev.lab.system import System, layouts_built, locks, not_as_asked, not_done
from dev.presets.scaling import Scale, scaled
from webapp.plans.document import read
from webapp.plans.selectors import version_of

SCALE = Scale(points=4)
PLANS = {
    "raid-levels": POOL,
    "rebuild-beside-clients": POOL,
    "strip-size": POOL,
    "stripes-over-arrays": POOL,
    "schedulers-and-file-systems": POOL,
    "drive-state": POOL,
    "interrupts": BAYS[0],
}


def presets(system: System) -> list[str]:
    """The problems."""
    problems: list[str] = []
    for slug, target in PLANS.items():
        document = scaled(read(version_of(slug).document), SCALE)
        with step(slug):
            run = system.finish(system.start(document, target))
        done = run.trials.filter(state="done").count()
        say(f"    {slug}: {done} of {run.trial_count} trials, {len(layouts_built(run))} layouts")
        problems += [*not_done(run), *not_as_asked(run)]
    return [*problems, *system.storage.left_on_drives(), *locks()]
