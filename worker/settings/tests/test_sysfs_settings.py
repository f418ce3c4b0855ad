"""Settings of hardware that is not in every host, on folders that look like /sys and /proc there.

The values are those of real hosts: a two-socket Xeon with intel_pstate, an md RAID 5. A folder
takes every write, so what the kernel refuses is tried on hosts that have the hardware.
"""

from pathlib import Path

import pytest

from worker.settings import REGISTRY, processors
from worker.settings.base import KernelFile, SettingError, SettingScope, subject_of
from worker.settings.devices import sync_speed
from worker.settings.processors import CpuFile, DeepestIdleState, IrqAffinity, IrqBalance

CONTROLLER = "0000:81:00.0"


def put(root: Path, **files: str) -> None:
    for name, value in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value + "\n")


@pytest.fixture
def sys(tmp_path: Path) -> Path:
    """Four processors on two NUMA nodes; the second pair idles deeper than the first."""
    root = tmp_path / "sys"
    put(root, devices__system__cpu__online="0-3")
    put(root, devices__system__node__node0__cpulist="0-1", devices__system__node__node1__cpulist="2-3")
    for cpu in range(4):
        at = f"devices__system__cpu__cpu{cpu}"
        put(root, **{f"{at}__cpufreq__scaling_governor": "powersave" if cpu < 2 else "performance"})
        put(root, **{f"{at}__cpufreq__scaling_available_governors": "performance powersave"})
        for state in range(4):
            put(root, **{f"{at}__cpuidle__state{state}__disable": "0"})
    return root


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    root = tmp_path / "proc"
    for number in (40, 41, 42):
        put(root, **{f"irq__{number}__smp_affinity_list": "0-3"})
    return root


def test_it_reads_and_writes_lists_of_processors() -> None:
    assert processors.parse_list("0-3,8,10-11") == (0, 1, 2, 3, 8, 10, 11)
    assert processors.write_list((8, 0, 1, 2, 3, 11, 10)) == "0-3,8,10-11"
    assert processors.parse_list("x") == processors.parse_list("") == ()
    values = {0: "a", 1: "a", 2: "b", 3: "a"}
    assert processors.join(values) == "a@0-1,3;b@2"
    assert processors.split(processors.join(values), (0, 1, 2, 3)) == values


def test_it_sets_every_processors_governor_and_puts_each_back(sys: Path) -> None:
    governor = CpuFile("cpu.governor", "scaling_governor", "scaling_available_governors", "", sys=sys)
    before = governor.capture("")
    assert before == "powersave@0-1;performance@2-3"
    governor.apply("", "performance")
    assert governor.read("") == "performance"
    governor.restore("", before)
    assert governor.read("") == before
    with pytest.raises(SettingError, match="performance, powersave"):
        governor.apply("", "schedutil")


def test_it_limits_idle_states_and_puts_each_back(sys: Path) -> None:
    idle = DeepestIdleState(sys)
    (sys / "devices/system/cpu/cpu3/cpuidle/state1/disable").write_text("1\n")
    before = idle.capture("")
    assert (before, idle.read("")) == ("0000@0-2;0100@3", "0000@0-2;0100@3")
    idle.apply("", "1")
    assert (idle.capture(""), idle.read("")) == ("0011", "1")
    idle.apply("", "3")
    assert idle.read("") == "3"
    idle.restore("", before)
    assert idle.capture("") == before
    with pytest.raises(SettingError, match="0 to 3"):
        idle.apply("", "4")


@pytest.mark.parametrize(
    ("value", "observed"),
    [
        ("cpu2", "40:2 41:2 42:2"),
        ("spread", "40:0 41:1 42:2"),
        ("node1", "40:2 41:3 42:2"),
        ("local", "40:2 41:3 42:2"),
        ("all", "40:0-3 41:0-3 42:0-3"),
    ],
)
def test_it_moves_a_controllers_interrupts(sys: Path, proc: Path, value: str, observed: str) -> None:
    at = f"bus__pci__devices__{CONTROLLER}"
    put(sys, **{f"{at}__numa_node": "1", f"{at}__irq": "16"}, **{f"{at}__msi_irqs__{n}": "msix" for n in (40, 41, 42)})
    setting = IrqAffinity(sys, proc)
    before = setting.capture(CONTROLLER)
    setting.apply(CONTROLLER, value)
    assert setting.read(CONTROLLER) == observed
    assert setting.verify(CONTROLLER, value, observed)
    assert not setting.verify(CONTROLLER, value, "40:1 41:1 42:1")
    assert setting.fact(CONTROLLER) == " ".join(pair[3:] for pair in observed.split())
    setting.restore(CONTROLLER, before)
    assert setting.capture(CONTROLLER) == "40:0-3 41:0-3 42:0-3"


@pytest.mark.parametrize("value", ["cpu9", "node7", "everywhere", "cpu"])
def test_it_refuses_processors_that_are_not_there(sys: Path, proc: Path, value: str) -> None:
    put(sys, **{f"bus__pci__devices__{CONTROLLER}__irq": "40"})
    with pytest.raises(SettingError, match="cannot be"):
        IrqAffinity(sys, proc).apply(CONTROLLER, value)


def test_it_sees_irqbalance_among_the_processes(proc: Path) -> None:
    daemon = IrqBalance(proc)
    assert (daemon.read(""), daemon.running()) == ("off", False)
    put(proc, **{"812__comm": "irqbalance"})
    assert daemon.read("") == "on"


def test_it_reads_an_arrays_limits(tmp_path: Path) -> None:
    put(tmp_path, class__block__md0__md__sync_speed_min="1000 (system)")
    put(tmp_path, class__block__md0__md__sync_speed_max="50000 (local)", class__block__md0__md__stripe_cache_size="256")
    slowest = sync_speed("min", "", tmp_path)
    fastest = sync_speed("max", "", tmp_path)
    cache = KernelFile("md.stripe_cache_size", "", file="md/stripe_cache_size", sys=tmp_path)
    assert (slowest.read("md0"), fastest.read("md0"), cache.read("md0")) == ("system", "50000", "256")
    assert slowest.verify("md0", "system", "system")
    assert not fastest.verify("md0", "system", "50000")
    with pytest.raises(SettingError, match="whole number"):
        fastest.apply("md0", "fast")


@pytest.mark.parametrize("value", ["64\n", "\u0664", "+64", "", "-2"])
def test_a_number_is_digits_alone(tmp_path: Path, value: str) -> None:
    put(tmp_path, class__block__sda__queue__nr_requests="32")
    with pytest.raises(SettingError, match="whole number"):
        KernelFile("nr_requests", "", sys=tmp_path).apply("sda", value)
    assert (tmp_path / "class/block/sda/queue/nr_requests").read_text().strip() == "32"


def test_a_device_without_a_controller_has_its_own_code(tmp_path: Path) -> None:
    of_controllers = next(setting for setting in REGISTRY.values() if setting.scope is SettingScope.CONTROLLER)
    with pytest.raises(SettingError) as failure:
        subject_of(of_controllers, "loop0", tmp_path)
    assert failure.value.code == "setting_no_controller"
