"""Built-in plans are scaled down: short, small, and valid."""

from dataclasses import replace

import msgspec
import pytest

from dev.presets.scaling import AMOUNT, MIB, STOP_RULE_S, Scale, scaled
from webapp.plans.document import PlanDocument, import_plan
from webapp.plans.expand import expand
from webapp.plans.grids import document_problems, part_grid
from webapp.plans.layouts import DriveFacts
from webapp.plans.load import RAMP_S, is_share
from webapp.plans.services import BUILTIN
from webapp.plans.tests.helpers import device, directory, document, part
from worker.contract.workload import TargetKind

SCALE = Scale()
BYTES = 384 * MIB
DRIVES = tuple(DriveFacts(f"a/d{n}", f"/dev/sd{n}", BYTES, purges={"discard": ""}) for n in range(SCALE.drives))
TARGETS = (
    directory(size_bytes=BYTES),
    *(device(id=f"d{n}", path=f"/dev/loop{n}", size_bytes=BYTES, purges={"discard": ""}) for n in range(4)),
    device(id="pool", kind=TargetKind.POOL, path="/dev", serial="", drives=DRIVES, size_bytes=BYTES),
)
PAIRS = (replace(TARGETS[-1], drives=DRIVES[:2]), replace(TARGETS[-1], id="pair", drives=DRIVES[2:]))


@pytest.fixture(params=sorted(BUILTIN.glob("*.yaml")), ids=lambda path: path.stem)
def small(request: pytest.FixtureRequest) -> PlanDocument:
    return scaled(import_plan(request.param.read_text(encoding="utf-8")), SCALE)


def test_it_runs_within_seconds_on_small_targets(small: PlanDocument) -> None:
    assert document_problems(small) == ()
    factors = (small.common, *(each.factors for each in small.parts))
    at_once, by_passes = (any(name in each for each in factors) for name in ("at_once", "passes"))
    each = any("each" in one.factors.get("streams_on", "") for one in small.parts)
    other = directory(id="dir2", path="/srv/other", name="a/other", size_bytes=BYTES)
    several = PAIRS if "layout" in small.common else TARGETS[1:5]
    made = expand(small, several if at_once else (TARGETS[0], other) if each else TARGETS, seed=1)
    assert not made.problems
    assert all(0 < len(part_grid(small, each).points) <= SCALE.points for each in small.parts)
    for trial in made.trials:
        most_s = STOP_RULE_S if trial.workload.may_end_early else 2 * SCALE.seconds
        assert trial.workload.time_s <= most_s + (RAMP_S if is_share(trial.point) else 0)  # its least ramp
        assert int(trial.point.get("amount") or 0) <= (SCALE.size_bytes if by_passes else AMOUNT)
        # An empty PostgreSQL cluster has a size of its own.
        unscaled = "size_percent" in trial.point or trial.point.get("engine") == "pgbench"
        assert trial.workload.space_bytes <= (BYTES if unscaled else SCALE.size_bytes)


def test_it_shows_the_outermost_levels_first() -> None:
    grid = document(part(pattern="randread, randwrite", block_size="512..4M *2", numjobs="1, 10, 40"))
    (one,) = scaled(grid, Scale(points=3)).parts
    assert one.rules == (
        "only when pattern=randread; block_size=512; numjobs=1",
        "only when pattern=randwrite; block_size=4M; numjobs=40",
        "only when pattern=randread; block_size=64k; numjobs=10",
    )


def test_it_keeps_one_change_at_a_time() -> None:
    base = part(scheduler="none, mq-deadline", read_ahead_kb="128, 0, 4096")
    rule = "one at a time scheduler, read_ahead_kb"
    small = scaled(document(msgspec.structs.replace(base, rules=(rule,))), Scale(points=3))
    changes = [point["change"] for point in part_grid(small, small.parts[0]).points]
    assert changes == ["base", "I/O scheduler mq-deadline", "Read-ahead 4096 KiB"]


def test_it_uses_as_many_hosts_as_there_are() -> None:
    plan = document(part(hosts_at_once="1, 2, 4"))
    assert [scaled(plan, Scale(hosts=hosts)).parts[0].factors["hosts_at_once"] for hosts in (1, 2)] == ["1", "1, 2"]
