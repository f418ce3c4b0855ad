"""Every setting that is there is a fact of the configuration, whether a plan names it or not."""

from pathlib import Path

import pytest

from worker.guard.tests import rig
from worker.settings import settings_facts


def test_it_tells_what_is_kernel_wide() -> None:
    facts = settings_facts(())
    assert facts["host.vm.dirty_ratio"] == Path("/proc/sys/vm/dirty_ratio").read_text().strip()
    assert facts["host.irqbalance"] in ("on", "off")
    assert not [name for name in facts if name.startswith("device.")]


@pytest.mark.root
@rig.needs_root[1]
def test_it_tells_a_devices_own_and_nothing_that_it_lacks(tmp_path: Path) -> None:
    with rig.loop(rig.sparse(tmp_path / "disk.img")) as path:
        name = Path(path).name
        Path(f"/sys/block/{name}/queue/scheduler").write_text("mq-deadline")
        facts = settings_facts((name,))
        assert facts[f"device.{name}.mq-deadline.fifo_batch"] == "16"
        assert not {f"device.{name}.{other}" for other in ("queue_depth", "irq_affinity", "scheduler")} & set(facts)
        Path(f"/sys/block/{name}/queue/scheduler").write_text("none")
