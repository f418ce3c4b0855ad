"""`run`, `wait`, `cancel` and `runs`."""

import argparse
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from . import output
from .answers import Finding, Progress, Run, read
from .errors import ContactLost, ExitCode, Interrupted, ServerFailed, TimedOut, Unreachable, UsageError
from .hosts import target_names
from .server import Server

WAIT_S = 20  # of one request; the server allows 30
MIN_INTERVAL_S = 2.0
OUTAGE_S = 900.0  # of the server, which a wait survives
LINE_INTERVAL_S = 30.0  # between lines of progress where there is no terminal
FINDINGS = 3
ENDED = ("done", "failed", "cancelled")
STATES = ("queued", "running", "paused", "closing", *ENDED)


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    _add_run(commands)
    wait = commands.add_parser("wait", help="wait for the end of a run")
    wait.add_argument("run", type=int, metavar="RUN", help="its number")
    _add_waiting(wait)
    wait.set_defaults(command=run_wait)
    cancel = commands.add_parser("cancel", help="cancel a run")
    cancel.add_argument("run", type=int, metavar="RUN", help="its number")
    cancel.add_argument("--json", action="store_true")
    cancel.set_defaults(command=run_cancel)
    runs = commands.add_parser("runs", help="list runs, latest first")
    runs.add_argument("--plan", default="")
    runs.add_argument("--host", default="")
    runs.add_argument("--state", choices=STATES)
    runs.add_argument("--limit", type=int, default=20, metavar="N", help="default: 20")
    runs.add_argument("--json", action="store_true")
    runs.set_defaults(command=run_runs)


def _add_run(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("run", help="start a run of a saved plan")
    parser.add_argument("plan", metavar="PLAN", help="its name")
    parser.add_argument("--version", type=int, metavar="N", help="version of the plan; default: the newest")
    parser.add_argument("--host", default="")
    parser.add_argument("--target", action="append", default=[], metavar="T", help="target on the host, or host/target")
    parser.add_argument("--arm", action="append", default=[], metavar="SERIAL", help="drive or file to be overwritten")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the order of trials")
    parser.add_argument("--note", default="")
    parser.add_argument("--wait", action="store_true", help="wait for the end of the run")
    _add_waiting(parser)
    parser.set_defaults(command=run_run)


def _add_waiting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="stop waiting after this time")
    parser.add_argument("--json", action="store_true")


def run_run(options: argparse.Namespace, server: Server) -> ExitCode:
    if Path(options.plan).suffix in (".yaml", ".yml", ".json"):
        raise UsageError(f"`run` takes the name of a saved plan. First: sweetspot plan push {options.plan}")
    started = _start(options, server)
    run = read(Run, started)
    if options.wait:
        output.remark(_started(run, server))
        return _wait(options, server, run.number)
    if options.json:
        output.print_json(started)
    else:
        print(_started(run, server))
    return ExitCode.OK


def _start(options: argparse.Namespace, server: Server) -> Any:
    body = {
        "plan": options.plan, "version": options.version, "note": options.note, "seed": options.seed,
        "targets": target_names(server, options.host, options.target), "armed_serials": options.arm,
        "request_id": str(uuid.uuid4()),
    }  # fmt: skip
    try:
        return server.post("runs", body, repeat=True)
    except KeyboardInterrupt as error:
        raise Interrupted("It is unknown whether the run was started. See: sweetspot runs") from error


def _started(run: Run, server: Server) -> str:
    return f"Run {run.number} of {run.plan} version {run.version}: {server.page(f'runs/{run.number}/')}"


def run_wait(options: argparse.Namespace, server: Server) -> ExitCode:
    return _wait(options, server, options.run)


def _wait(options: argparse.Namespace, server: Server, number: int) -> ExitCode:
    run = None
    reporter = _Reporter()
    try:
        for run in _until_end(server, number, options.timeout):
            reporter.show(run)
    except KeyboardInterrupt as error:
        words = f"Run {number} continues on the server. To wait again: sweetspot wait {number}"
        raise Interrupted(f"{words} – to stop it: sweetspot cancel {number}") from error
    finally:
        reporter.close()
    return _ended(options, server, run)


def _until_end(server: Server, number: int, timeout: float | None) -> Iterator[Any]:
    """The run again and again, the last time after its end. Raises TimedOut."""
    end = None if timeout is None else monotonic() + timeout
    while True:
        left = WAIT_S if end is None else max(0.0, min(WAIT_S, end - monotonic()))
        asked_at = monotonic()
        run = _patiently(server, number, left)
        yield run
        if run["state"] in ENDED:
            return
        if end is not None and monotonic() >= end:
            raise TimedOut(f"Run {number} has not ended and continues. To wait again: sweetspot wait {number}")
        sleep(max(0.0, MIN_INTERVAL_S - (monotonic() - asked_at)))


def _patiently(server: Server, number: int, seconds: float) -> Any:
    """Survive a restart of the server or of its database. Raises ContactLost after OUTAGE_S."""
    end = monotonic() + OUTAGE_S
    while True:
        try:
            return server.get(f"runs/{number}/wait", [("seconds", seconds)])
        except (Unreachable, ServerFailed) as error:
            if monotonic() > end:
                words = f"Run {number} continues if it was not cancelled. To wait again: sweetspot wait {number}"
                raise ContactLost(f"No answer for {OUTAGE_S / 60:.0f} minutes. {error} {words}") from error
            output.remark(f"{error} Trying again.")
            sleep(MIN_INTERVAL_S)


class _Reporter:
    """Progress on standard error: one changing line on a terminal, else a line now and then."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._last, self._at, self._width = "", float("-inf"), 0

    def show(self, run: Any) -> None:
        line = output.printable(progress_line(read(Run, run), read(Progress, run["progress"])))
        if self._is_terminal:
            print(f"\r{line:<{self._width}}", end="", file=sys.stderr, flush=True)
            self._width = len(line)
        elif line != self._last and monotonic() - self._at >= LINE_INTERVAL_S:
            print(line, file=sys.stderr, flush=True)
            self._at = monotonic()
        self._last = line

    def close(self) -> None:
        if self._is_terminal and self._last:
            print(file=sys.stderr)


def progress_line(run: Run, progress: Progress) -> str:
    parts = [f"Run {run.number} {run.state}: {progress.done} of {progress.total} trials done"]
    parts += [f"{count} {word}" for count, word in ((progress.failed, "failed"), (progress.lost, "lost")) if count]
    if progress.running is not None:
        parts.append(f"trial {progress.running} is running")
    if progress.seconds_left is not None and run.state not in ENDED:
        parts.append(f"about {output.duration(progress.seconds_left)} left")
    return ", ".join(parts)


def _ended(options: argparse.Namespace, server: Server, run_now: Any) -> ExitCode:
    run = read(Run, run_now)
    if options.json:
        output.print_json(run_now)
    else:
        counts = f"{run.done_count} of {run.trial_count} trials done, {run.failed_count} failed."
        words = [f"Run {run.number} {run.state}: {counts}", run.reason, server.page(f"runs/{run.number}/")]
        print(output.printable(" ".join(filter(None, words))))
        try:
            print_findings(server, run.number)
        except (Unreachable, ServerFailed) as error:  # the exit code is that of the run
            output.remark(f"The findings are missing. {error}")
    return ExitCode.OK if run.state == "done" and run.failed_count == 0 else ExitCode.FAILED


def print_findings(server: Server, number: int) -> None:
    """The most important findings of a run, each with the address of the page that shows it."""
    findings = [read(Finding, found) for found in server.get(f"runs/{number}/findings")]
    for finding in [each for each in findings if each.is_news][:FINDINGS]:
        print(output.printable(f"Finding: {finding.sentence} {server.page(f'explore/?{finding.query}')}"))


def run_cancel(options: argparse.Namespace, server: Server) -> ExitCode:
    answer = server.post(f"runs/{options.run}/cancel", repeat=True)
    if options.json:
        output.print_json(answer)
    else:
        run = read(Run, answer)
        print(f"Run {run.number} is {run.state}." if run.state in ENDED else f"Run {run.number} will be cancelled.")
    return ExitCode.OK


def run_runs(options: argparse.Namespace, server: Server) -> ExitCode:
    named = {"plan": options.plan, "host": options.host, "state": options.state}
    runs = list(server.items("runs", [(key, text) for key, text in named.items() if text], most=options.limit))
    if options.json:
        output.print_json(runs)
    else:
        head = ("run", "plan", "state", "done", "failed", "by", "created", "note")
        print(output.table(head, [_row(read(Run, run)) for run in runs]))
    return ExitCode.OK


def _row(run: Run) -> tuple[str, ...]:
    return (
        str(run.number), f"{run.plan} v{run.version}", run.state, f"{run.done_count}/{run.trial_count}",
        str(run.failed_count), run.created_by or "–", output.moment(run.created_at), run.note.replace("\n", " ")[:60],
    )  # fmt: skip
