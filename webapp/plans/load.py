"""The factor `load`: shares of the IOPS that a point reaches at most. Pure.

    load: [10%, 50%, 90%, max]

`max` is the ordinary job, which keeps its queues full. A share is an open loop: I/Os arrive at random times (Poisson),
whether or not earlier ones have ended. Its rate is known once the run has measured `max` at the same point.

A job of fio waits for its I/Os in flight before it sleeps until the next arrival, so one job with a deep queue delays
arrivals. A share therefore runs as many jobs with one I/O in flight each: together, their arrivals are Poisson again,
and an arrival is delayed only if the last I/O of its own job has not ended. Decision 37 has the measurements.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

from msgspec.structs import replace

from webapp.plans.values import Count, Value
from worker.contract.fio_options import RateProcess
from worker.contract.workload import AnyWorkload, FioWorkload

LOAD = "load"
MAX = 100  # the level `max`
RAMP_S = 2  # at least: the first I/Os of all jobs arrive at once
JOBS_PER_IO = 4  # for each I/O that would be in flight if the latency were that of `max`
MIN_JOBS, MAX_JOBS = 16, 128
MORE_JOBS = 1.25  # fio's rates are whole numbers, so up to so many times the jobs are tried for the nearest rate


@dataclass(frozen=True)
class LoadShare(Count):
    """Percent of the maximum; 100 is `max`."""

    low: int = 1
    high: int = MAX
    suffix: str = " %"

    def parse(self, text: str) -> Value:
        return MAX if text.strip().lower() == "max" else super().parse(text)

    def format(self, value: Value) -> str:
        return "max" if value == MAX else super().format(value)

    def write(self, value: Value) -> str:
        return "max" if value == MAX else f"{value}%"


def is_load(name: str) -> bool:
    """Whether it is the factor, also of a stream: `reader.load`."""
    return name.rpartition(".")[2] == LOAD


def is_share(point: Mapping[str, object]) -> bool:
    """Whether its trials are open loops, or one of their streams is."""
    return any(is_load(name) and level != MAX for name, level in point.items())


def fio_workload(work: AnyWorkload) -> FioWorkload:
    """That of a trial at a share: only fio has the factor."""
    assert isinstance(work, FioWorkload)
    return work


def open_loop(work: FioWorkload, percent: int, maximum: Sequence[float]) -> FioWorkload | None:
    """The workload at this share. `maximum`: IOPS of each direction, reads first. None if a direction would have less
    than one I/O per second, fio's smallest rate."""
    wanted = [iops * percent / 100 for iops in maximum]
    slowest = int(min(wanted))
    if slowest < 1:
        return None
    least = min(max(MIN_JOBS, math.ceil(JOBS_PER_IO * work.depth * percent / 100)), MAX_JOBS, slowest)
    most = min(int(least * MORE_JOBS), slowest)
    jobs = min(range(least, most + 1), key=lambda count: max(_rounding(iops, count) for iops in wanted))
    rates = [round(iops / jobs) for iops in wanted]
    options = replace(
        work.options,
        rate_iops=rates[0],
        write_rate_iops=rates[1] if len(rates) > 1 else None,
        rate_process=RateProcess.POISSON,
    )
    return replace(work, numjobs=jobs, iodepth=1, options=options, seed=_seed(work.seed, percent))


def _seed(seed: int, percent: int) -> int:
    """From small seeds, such as the number of a repeat, fio draws intervals that are too long by up to 1.4 % in the
    mean of its jobs, the same ones in every run."""
    return crc32(f"{seed} {percent}".encode())


def _rounding(iops: float, jobs: int) -> float:
    """The relative error of whole rates."""
    return abs(jobs * round(iops / jobs) / iops - 1)


def asked_iops(work: FioWorkload) -> int:
    """The rate of an open loop, over all jobs and directions."""
    return work.numjobs * ((work.options.rate_iops or 0) + (work.options.write_rate_iops or 0))
