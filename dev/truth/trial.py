"""One trial of the worker's fio engine on a drive of known speed, and a comparison of its numbers with fio's JSON."""

import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from worker.contract.items import DirectionResult, Sample, StreamResult, StreamStarted
from worker.contract.packing import Histogram, merge, supported_percentile, unpack
from worker.contract.steadiness import Steadiness, steadiness
from worker.contract.workload import FioWorkload, Stream, TargetKind, TargetRef
from worker.engines import engine_of
from worker.engines.running import Running
from worker.kernel.targets import OpenTarget
from worker.process.run import Limits
from worker.process.scope import open_scope

SILENCE_S, END_S = 60.0, 150.0  # the silence limit of an order; the longest that a trial of 20 s may take
PERCENTS = (50.0, 95.0, 99.0, 99.9)  # which both fio and the product give


@dataclass(frozen=True)
class Trial:
    result: StreamResult
    samples: tuple[Sample, ...]

    @property
    def began(self) -> float:
        """Start of the measured part, in Unix seconds."""
        return self.samples[0].at - self.samples[0].offset_ms / 1000

    @property
    def verdict(self) -> Steadiness:
        return steadiness((s.offset_ms, s.length_ms, float(d.ios)) for s in self.samples for d in s.directions)


def run(path: str, work: FioWorkload) -> Trial:
    """`path`: of a block device. Raises worker.engines.base.StreamFailed."""
    device = Path(path).name
    stream = Stream(number=0, target=TargetRef(id="t", kind=TargetKind.BLOCK, path=path, stable_id="s"), workload=work)
    samples: list[Sample] = []

    def report(item: StreamStarted | Sample) -> None:
        if isinstance(item, Sample):
            samples.append(item)

    with tempfile.TemporaryDirectory() as state, open_scope(Path(state), f"truth-{device}") as scope:
        result = engine_of(stream).run_stream(
            Running(
                stream=stream,
                target=OpenTarget(path=path, device=device),
                scope=scope,
                limits=Limits(total_s=END_S, silence_s=SILENCE_S),
                cancelled=threading.Event(),
                report=report,
            )
        )
    return Trial(result, tuple(samples))


def differences(trial: Trial) -> list[str]:
    """Differences from fio's own JSON, and between the samples and the result. Any difference is an error."""
    (attachment,) = trial.result.attachments
    (job,) = json.loads(attachment.text)["jobs"]
    found: list[str] = []
    if not trial.result.stalled_s:  # fio was killed before its last report
        found = [text for each in trial.result.directions for text in _from_fio(each, job[each.direction.value])]
    return found + [text for each in trial.result.directions for text in _from_samples(each, trial.samples)]


def _from_fio(ours: DirectionResult, flow: dict[str, Any]) -> Iterator[str]:
    latency, histogram = flow[f"{ours.latency_kind.value}_ns"], unpack(ours.latency)
    seconds = flow["runtime"] / 1000
    pairs: dict[str, tuple[object, object]] = {
        "I/Os": (ours.ios, latency["N"]),
        "bytes": (ours.bytes, flow["io_bytes"]),
        "runtime": (ours.runtime_ms, flow["runtime"]),
        "IOPS": (ours.iops, latency["N"] / seconds),
        "bytes/s": (ours.bytes_per_s, flow["io_bytes"] / seconds),
        "minimum": (ours.latency_min_ns, latency["min"]),
        "mean": (ours.latency_mean_ns, latency["mean"]),
        "maximum": (ours.latency_max_ns, latency["max"]),
        "standard deviation": (ours.latency_stddev_ns, latency["stddev"]),
        "histogram": (_plain(histogram), {int(ns): count for ns, count in latency["bins"].items() if count}),
    }
    for percent in PERCENTS:
        if (shown := supported_percentile(histogram, percent)) is not None:
            pairs[f"p{percent:g}"] = (shown, latency["percentile"][f"{percent:.6f}"])
    yield from (f"{name}: {one} is not fio's {other}" for name, (one, other) in pairs.items() if one != other)


def _plain(histogram: Histogram) -> dict[int, int]:
    return dict(zip(histogram.latency_ns, histogram.counts, strict=True))


def _from_samples(ours: DirectionResult, samples: Sequence[Sample]) -> Iterator[str]:
    parts = [part for sample in samples for part in sample.directions if part.direction is ours.direction]
    pairs: dict[str, tuple[object, object]] = {
        "I/Os": (sum(part.ios for part in parts), ours.ios),
        "bytes": (sum(part.bytes for part in parts), ours.bytes),
        "histogram": (merge(unpack(part.latency) for part in parts), unpack(ours.latency)),
    }
    yield from (f"samples' {name}: {one}, the result's {other}" for name, (one, other) in pairs.items() if one != other)


class Script(threading.Thread):
    """Change a drive while a trial runs: each action at its time after the start of the script, in s."""

    def __init__(self, actions: Sequence[tuple[float, Callable[[], None]]]) -> None:
        super().__init__(daemon=True)
        self._actions = actions
        self.done_at: list[float] = []  # in Unix seconds
        self.late_s: list[float] = []
        self.start()

    def run(self) -> None:
        began = time.monotonic()
        for after_s, act in self._actions:
            time.sleep(max(0.0, began + after_s - time.monotonic()))
            act()
            self.late_s.append(time.monotonic() - began - after_s)
            self.done_at.append(time.time())
