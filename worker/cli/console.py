"""Print a trial's items as lines, and its results as a table."""

import time
from collections.abc import Callable

from worker.cli import formatting
from worker.cli.restore import restored_line
from worker.contract.items import (
    DirectionResult,
    Finished,
    Item,
    KernelLog,
    Outcome,
    Phase,
    Purged,
    Sample,
    SettingRecord,
    SettingRestored,
    StreamResult,
    StreamStarted,
)
from worker.contract.orders import TrialOrder
from worker.contract.packing import unpack

HEAD = ("stream", "direction", "IOPS", "throughput", "mean", "p50", "p99", "p99.9", "max", "total")


class Console:
    """Print items as they arrive; the final item prints the table."""

    def __init__(self, order: TrialOrder) -> None:
        self._targets = {stream.number: stream.target.path for stream in order.streams}
        self._results: list[StreamResult] = []
        self._kinds: dict[type, Callable[..., str]] = {
            Phase: _phase,
            SettingRecord: _setting,
            SettingRestored: restored_line,
            Purged: lambda item: f"{item.device} purged by {item.method} in {item.seconds:.1f} s",
            StreamStarted: lambda item: f"stream {item.stream}: started on {self._targets.get(item.stream, '?')}",
            Sample: _sample,
            KernelLog: lambda item: "\n".join(f"kernel: {line.text}" for line in item.lines),
            Finished: self._finished,
        }

    def show(self, item: Item) -> None:
        if isinstance(item, StreamResult):
            self._results.append(item)
        elif (form_of := self._kinds.get(type(item))) is not None:
            print(form_of(item), flush=True)

    def _finished(self, item: Finished) -> str:
        rows = [_row(result, part) for result in self._results for part in result.directions]
        table = "\n" + formatting.table(HEAD, rows) + "\n\n" if rows else ""
        if item.outcome is Outcome.DONE:
            return f"{table}Done."
        return f"{table}{item.outcome.value.capitalize()}: {item.code}: {item.message}"


def _phase(item: Phase) -> str:
    percent = "" if item.percent is None else f"{item.percent:.0f} %"
    stream = "" if item.stream is None else f"stream {item.stream}"
    told = (item.name, percent, item.target, item.method or "", item.layout, stream)
    return " ".join([time.strftime("%H:%M:%S", time.localtime(item.at)), *filter(None, told)])


def _setting(item: SettingRecord) -> str:
    return f"{item.name} of {item.device or 'the host'}: was {item.before}, requested {item.asked}, is {item.observed}"


def _sample(item: Sample) -> str:
    parts = [f"stream {item.stream} {item.offset_ms / 1000:6.1f} s{' (estimated)' if item.estimated else ''}"]
    for one in item.directions:
        seconds = item.length_ms / 1000
        parts.append(
            f"{one.direction.value} {formatting.rate(one.ios / seconds)} IOPS {formatting.size(one.bytes / seconds)}/s "
            f"p50 {formatting.latency(one.p50_ns)} p99 {formatting.latency(one.p99_ns)}"
        )
    if item.device is not None:
        device = item.device
        parts.append(f"{device.device} {device.utilisation_percent:.0f} % busy, {device.queue_depth:.1f} in flight")
    return " | ".join(parts)


def _row(result: StreamResult, part: DirectionResult) -> tuple[str, ...]:
    histogram = unpack(part.latency)
    percentiles = (formatting.latency(histogram.percentile(percent)) for percent in (50.0, 99.0, 99.9))
    return (
        str(result.stream),
        part.direction.value,
        formatting.rate(part.iops),
        f"{formatting.size(part.bytes_per_s)}/s",
        formatting.latency(part.latency_mean_ns),
        *percentiles,
        formatting.latency(part.latency_max_ns),
        formatting.size(part.bytes),
    )
