"""How a comparison interprets the facts of a configuration. The names of facts are the worker's (`inventory.facts`)."""

from collections.abc import Iterable, Mapping

from webapp.analysis.dimensions import DIMENSIONS, label_of
from webapp.plans.factors import AT_ONCE, HOSTS_AT_ONCE
from webapp.plans.setting_rows import SETTING_ROWS, scheduler_needed

# Facts that identify a target or device, also labels of imports: file name of the device, folder of the results. They
# are not reported if targets or hosts are compared.
IDENTITY = frozenset(
    f"device.{name}"
    for name in (
        "stable_id", "kind", "model", "serial", "firmware", "transport", "size_bytes", "below", "rotational",
        "max_hw_sectors_kb", "logical_block_size", "physical_block_size", "minimum_io_size", "optimal_io_size",
        "zoned", "fua", "io_poll",
    )
) | {
    "target", "target.kind", "device", "file_system.size_bytes", "filename", "folder",
}  # fmt: skip

# Facts that change all the time and do not matter. Each build of a layout has another mount point.
VOLATILE = frozenset({"file_system.size_bytes", "file_system.mount"})

# Settings that the kernel changes together with another setting: a consequence, not a second cause.
EFFECTS: Mapping[str, frozenset[str]] = {
    "scheduler": frozenset(
        {"nr_requests", "wbt_lat_usec", *(row.name for row in SETTING_ROWS if scheduler_needed(row.name))}
    ),
    "vm.dirty_ratio": frozenset({"vm.dirty_bytes"}),
    "vm.dirty_bytes": frozenset({"vm.dirty_ratio"}),
    "vm.dirty_background_ratio": frozenset({"vm.dirty_background_bytes"}),
    "vm.dirty_background_bytes": frozenset({"vm.dirty_background_ratio"}),
    "read_ahead_sectors": frozenset({"read_ahead_kb"}),
} | {
    name: frozenset({"read_ahead_kb"})  # newer kernels recompute it
    for name in ("max_sectors_kb", "rotational", "add_random", "iostats", "write_cache", "io_poll")
}


def setting_of(fact: str) -> str:
    """The factor that a fact observes: `scheduler` for `device.scheduler`; "" if there is none."""
    scope, _, name = fact.partition(".")
    return name if scope in ("device", "host") and name in DIMENSIONS else ""


def causes(fact: str, dimensions: Iterable[str]) -> list[str]:
    """Labels of the compared factors that cause this fact."""
    name = setting_of(fact)
    return [label_of(cause) for cause in dimensions if name in EFFECTS.get(cause, ()) or _made_by(cause, fact)]


def _made_by(cause: str, fact: str) -> bool:
    """A different layout is a different device or file system, so all their facts follow from it, but not the
    controller, which is there before. More targets at once are more drives, so facts that identify drives follow from
    it.
    """
    if fact.startswith("device.controller."):
        return False
    if cause in (AT_ONCE, HOSTS_AT_ONCE):
        return fact in IDENTITY
    return cause.partition(".")[0] == "layout" and fact.startswith(("device", "file_system"))
