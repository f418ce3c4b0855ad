"""`run`: run a trial from a file without a server, with the same guard as for a server's trials."""

import argparse
import signal
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from worker import policy, recipes, settings
from worker.cli import formatting
from worker.cli.restore import restored_line
from worker.contract.base import CONTRACT_VERSION, ContractError
from worker.contract.inventory import PolicyTarget
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
from worker.contract.orders import TrialOrder, decode_order
from worker.contract.packing import unpack
from worker.contract.workload import WriteStep
from worker.drives.wear import Wear
from worker.engines.complete_files import CompleteFiles
from worker.journal import Journal
from worker.layouts import building
from worker.link.enrolment import ConfigError, Paths, prepare_state, sole_use
from worker.link.targets import report_targets_here
from worker.orders.context import HostContext, OrderContext, error_text, finished
from worker.orders.trial import carry_out
from worker.process.control import Control
from worker.recipes.base import Recipe, RecipeError
from worker.recipes.steps import prepared, render_prefill, step_stream, step_words
from worker.settings import SETTING_NAMES, session
from worker.settings.base import SettingError, named, subject_of

# Print a trial's items as lines, and its results as a table.

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
    fields = (item.name, percent, item.target, item.method or "", item.layout, stream)
    return " ".join([time.strftime("%H:%M:%S", time.localtime(item.at)), *filter(None, fields)])


def _setting(item: SettingRecord) -> str:
    return f"{item.name} of {item.device or 'the host'}: was {item.before}, requested {item.asked}, is {item.observed}"


def _sample(item: Sample) -> str:
    parts = [f"stream {item.stream} {item.offset_ms / 1000:6.1f} s{' (estimated)' if item.estimated else ''}"]
    seconds = item.length_ms / 1000
    for each in item.directions:
        parts.append(
            f"{each.direction.value} {formatting.rate(each.ios / seconds)} IOPS "
            f"{formatting.size(each.bytes / seconds)}/s "
            f"p50 {formatting.latency(each.p50_ns)} p99 {formatting.latency(each.p99_ns)}"
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


MAX_FILE_BYTES = 1024 * 1024
ARMED_S = 3600.0


def add_to(commands_of: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands_of.add_parser("run", help="run a trial from a file, without a server")
    parser.add_argument("file", type=Path, help="JSON: streams, settings, drop_caches … (example: README.md)")
    parser.add_argument("--dry-run", action="store_true", help="print the jobs and settings, change nothing")
    parser.add_argument("--json", action="store_true", help="print each item as a line of JSON")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace, paths: Paths) -> int:
    order = read_trial(options.file, paths)
    if options.dry_run:
        return dry_run(order, paths)
    prepare_state(paths.state)
    with sole_use(paths.state):
        end = _run(order, paths, _json_line if options.json else Console(order).show)
    return 0 if end.outcome is Outcome.DONE else 1


def _json_line(item: Item) -> None:
    print(msgspec.json.encode(item).decode(), flush=True)


def _run(order: TrialOrder, paths: Paths, show: Callable[[Item], None]) -> Finished:
    control = Control(order.attempt)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: control.stop(Outcome.CANCELLED, "cancelled", "Cancelled in the terminal."))
    journal = Journal(paths.journal)
    host = HostContext(paths.state, paths.policy, journal, CompleteFiles(paths.files))
    try:
        end = carry_out(order, OrderContext(host=host, emit=show, control=control))
    finally:
        restored = session.restore_run(order.run, journal)
        restored += building.restore(journal.layouts(order.run), state=paths.state, journal=journal)
        for item in restored:
            show(item)
        Wear(paths.state, order.run, show).close()
    end = _with_restored(end, restored)
    show(end)
    return end


def _with_restored(end: Finished, restored: "list[SettingRestored]") -> Finished:
    left = [restored_line(item) for item in restored if not item.restored]
    if left and end.outcome is Outcome.DONE:
        return finished(Outcome.FAILED, "settings_not_restored", "; ".join(left))
    return end


# ---- the file


def read_trial(path: Path, paths: Paths) -> TrialOrder:
    """Convert the file to an order of this host to itself. Raises ConfigError.

    A stream's target is a complete target as in an order, or the id of a target in the policy.
    """
    content = _read_json(path)
    ids = {key: str(uuid.uuid4()) for key in ("attempt", "run", "trial")}
    head = {"purpose": "trial", "host": "local", "version": CONTRACT_VERSION, **ids}
    now = {"issued_at": time.time(), "expires_at": time.time() + 86400}
    if serials := content.pop("armed_serials", ()):
        content["arming"] = {"serials": serials, "by": "the file", "until": time.time() + ARMED_S}
    streams = content.get("streams") or []
    if isinstance(streams, list):  # else the contract refuses it below
        content["streams"] = [_stream(number, stream, paths) for number, stream in enumerate(streams)]
    try:
        order = decode_order(msgspec.json.encode({**content, **head, **now}))
    except (ContractError, UnicodeEncodeError, RecursionError) as error:
        raise ConfigError("trial_file", f"{path}: {error}") from error
    assert isinstance(order, TrialOrder)
    _check_streams(path, order)
    return order


def _read_json(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(MAX_FILE_BYTES), type=dict[str, Any])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError("trial_file", f"{path} cannot be read: {error}") from error


def _stream(number: int, stream: Any, paths: Paths) -> Any:
    if not isinstance(stream, dict):
        return stream
    target, workload = stream.get("target"), stream.get("workload")
    named = {"target": _target(target, paths) if isinstance(target, str) else target}
    if isinstance(workload, dict):
        named["workload"] = {"engine": recipes.DEFAULT_ENGINE, **workload}
    return {"number": number, **stream, **named}


def _target(name: str, paths: Paths) -> dict[str, str]:
    targets = {each.id: each for each in _targets(paths)}
    if name not in targets:
        known = ", ".join(targets) or "none"
        raise ConfigError("target_unknown", f"{paths.policy} lists no target {name!r}. It lists: {known}.")
    target = targets[name]
    return {
        "id": target.id,
        "kind": target.kind.value,
        "path": target.path,
        "stable_id": target.stable_id,
        "serial": target.serial,
    }


def _targets(paths: Paths) -> tuple[PolicyTarget, ...]:
    try:
        return report_targets_here(policy.load(paths.policy, SETTING_NAMES), paths)
    except policy.PolicyError as error:
        raise ConfigError("policy", error_text(error)) from error


def _check_streams(path: Path, order: TrialOrder) -> None:
    if order.start_limit_s is not None:
        raise ConfigError("trial_file", f"{path}: start_limit_s is only for trials of a server on several hosts.")
    numbers = [stream.number for stream in order.streams]
    for request in order.settings:
        if request.stream not in numbers:
            words = f"{path}: setting {request.name} names stream {request.stream}, which does not exist."
            raise ConfigError("trial_file", words)
    for stream in order.streams:
        if problems := recipes.workload_problems(stream.workload, stream.target.kind):
            raise ConfigError("trial_file", f"{path}, stream {stream.number}: {' '.join(problems)}")


# ---- dry run


def dry_run(order: TrialOrder, paths: Paths) -> int:
    targets = _targets(paths)
    devices = {(target.path, target.stable_id): target.device for target in targets}
    sizes = {target.stable_id: target.size_bytes for target in targets}
    if order.purge is not None:
        purged = ", ".join(dict.fromkeys(stream.target.path for stream in order.streams))
        print(f"# first, a purge by {order.purge} destroys all data on {purged}")
    for stream in order.streams:
        if (prefill := render_prefill(stream)) is not None:
            _print_recipe(f"stream {stream.number}, prefill, unless the files are complete", prefill)
    for number, step in enumerate(order.steps, start=1):
        if not isinstance(step, WriteStep):
            print(f"# step {number}: {step_words(step)}")
            continue
        for stream in prepared(order.streams):
            writer = step_stream(step, stream, sizes.get(stream.target.stable_id, 0), number=number)
            try:
                recipe = recipes.render(writer)
            except RecipeError as error:
                raise ConfigError("trial_file", f"step {number}: {error}") from error
            _print_recipe(f"stream {stream.number}, step {number}: {step_words(step)}", recipe)
    for stream in order.streams:
        _print_recipe(f"stream {stream.number}, measurement", recipes.render(stream))
    streams = {stream.number: stream for stream in order.streams}
    for request in order.settings:
        target, name = streams[request.stream].target, request.name
        device = devices.get((target.path, target.stable_id), "")
        print(f"# setting {name} of {_subject(name, device)}: {_current(name, device)} -> {request.value}")
    if order.drop_caches:
        print("# the caches are dropped before the streams start")
    return 0


def _print_recipe(title: str, recipe: Recipe) -> None:
    print(f"# {title}\n# {' '.join(recipe.command)}\n{recipe.job_text}")


def _subject(name: str, device: str) -> str:
    """The subject of a setting: the host, a controller, or the device."""
    setting = settings.REGISTRY.get(name)
    try:
        return named(subject_of(setting, device)) if setting else device
    except SettingError:
        return "an unknown device"


def _current(name: str, device: str) -> str:
    setting = settings.REGISTRY.get(name)
    if setting is None:
        return "unknown"
    try:
        return setting.read(subject_of(setting, device))
    except Exception as error:  # noqa: BLE001 - a dry run continues after a value that it cannot read
        print(f"sweetspot-worker: {name} of {device} cannot be read: {error}", file=sys.stderr)
        return "unreadable"
