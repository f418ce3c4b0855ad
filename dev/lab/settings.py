"""Every setting of the guest is changed by plans, under the restrictions of the service, and restored."""

from dev.console import say, step
from dev.lab.storage_host import BAYS, NVME, POOL, SATA
from dev.lab.system import System, not_as_asked, not_done
from webapp.plans.document import Part, PlanDocument
from webapp.runs.models import SettingChange

WORK = {"pattern": "randread", "ioengine": "psync", "block_size": "4k", "runtime": "1s"}
# For each trial: target, other factors, settings.
TRIALS: tuple[tuple[str, dict[str, str], dict[str, str]], ...] = (
    (BAYS[0], {}, {
        "scheduler": "mq-deadline", "mq-deadline.read_expire": "400", "mq-deadline.write_expire": "4000",
        "mq-deadline.writes_starved": "3", "mq-deadline.fifo_batch": "8", "mq-deadline.front_merges": "0",
        "mq-deadline.async_depth": "48", "mq-deadline.prio_aging_expire": "8000",
        "read_ahead_kb": "64", "nr_requests": "64", "rq_affinity": "2", "nomerges": "1", "max_sectors_kb": "128",
        "rotational": "1", "add_random": "1", "iostats": "0", "queue_depth": "16", "irq_affinity": "cpu1",
        "wbt_lat_usec": "20000",
        "vm.dirty_ratio": "30", "vm.dirty_background_ratio": "5", "vm.dirty_expire_centisecs": "2000",
        "vm.dirty_writeback_centisecs": "400", "transparent_hugepage": "never",
    }),
    (BAYS[0], {}, {
        "scheduler": "bfq", "bfq.low_latency": "0", "bfq.slice_idle_us": "4000", "bfq.max_budget": "1000",
        "bfq.timeout_sync": "100", "bfq.strict_guarantees": "1", "bfq.fifo_expire_sync": "100",
        "bfq.fifo_expire_async": "200", "bfq.back_seek_max": "8192", "bfq.back_seek_penalty": "3",
        "read_ahead_sectors": "256", "vm.dirty_bytes": "67108864", "vm.dirty_background_bytes": "33554432",
    }),
    (BAYS[0], {}, {
        "scheduler": "kyber", "kyber.read_lat_nsec": "1000000", "kyber.write_lat_nsec": "5000000",
        "write_cache": "write through",
    }),
    (SATA, {}, {"drive_write_cache": "write through"}),
    (NVME, {}, {"nvme.write_cache": "0"}),
    (POOL, {"layout": "raid5 x3 chunk 64k"}, {
        "md.stripe_cache_size": "512", "md.sync_speed_min": "2000", "md.sync_speed_max": "90000",
    }),
)  # fmt: skip


def documents() -> list[PlanDocument]:
    """One for each of TRIALS."""
    return [
        PlanDocument(
            title=f"Settings {number}", parts=(Part(name="main", factors={**WORK, **more, **wanted}),), repeats=1
        )
        for number, (_, more, wanted) in enumerate(TRIALS)
    ]


def settings(system: System) -> list[str]:
    """The problems."""
    problems: list[str] = []
    names: set[str] = set()
    with step("changing every setting by plans"):
        for document, (slug, _, wanted) in zip(documents(), TRIALS, strict=True):
            run = system.finish(system.start(document, slug))
            problems += [*not_done(run), *not_as_asked(run)]
            seen = SettingChange.objects.filter(attempt__run=run, restoring=False).values_list("name", flat=True)
            problems += [f"{run} does not report {name}" for name in sorted({*wanted} - {*seen})]
            names |= {*wanted} & {*seen}
    say(f"    {len(names)} settings changed, read back and restored by the service")
    return problems
