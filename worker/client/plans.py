"""`plan check` and `plan push`."""

import argparse
import sys
from pathlib import Path
from urllib.parse import quote

from . import output
from .answers import Estimate, Preview, read
from .errors import ExitCode, Refused, UsageError
from .hosts import target_names
from .server import Server

FILE_CODES = ("plan_file_refused", "plan_refused", "text_refused")


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    plan = commands.add_parser("plan", help="check or save a plan file")
    parts = plan.add_subparsers(title="commands", required=True, metavar="COMMAND")
    check = parts.add_parser("check", help="check a plan file and preview a run; saves nothing")
    check.add_argument("file", metavar="FILE", help="YAML or JSON; - for standard input")
    check.add_argument("--host", default="", help="host of the preview; without it, only the plan itself is checked")
    check.add_argument("--target", action="append", default=[], metavar="T", help="target on the host, or host/target")
    check.add_argument("--json", action="store_true")
    check.set_defaults(command=run_check)
    push = parts.add_parser("push", help="create a plan, or save its next version")
    push.add_argument("file", metavar="FILE", help="YAML or JSON; - for standard input")
    push.add_argument("--name", default="", help="name of the plan; default: name of the file")
    push.add_argument("--json", action="store_true")
    push.set_defaults(command=run_push)


def run_check(options: argparse.Namespace, server: Server) -> ExitCode:
    text = _text(options.file)
    targets = target_names(server, options.host, options.target) if options.host or options.target else []
    try:
        found = server.post("previews", {"yaml": text, "targets": targets}, repeat=True)
    except Refused as refused:
        return _refused_file(options.file, refused)
    preview = read(Preview, found)
    if options.json:
        output.print_json(found)
    else:
        print(output.printable("\n".join(_lines(preview, targets))))
    return ExitCode.FAILED if preview.problems else ExitCode.OK


def run_push(options: argparse.Namespace, server: Server) -> ExitCode:
    name = options.name or Path(options.file).stem
    if not name or name == "-":
        raise UsageError("The plan needs a name: --name nightly")
    try:
        found = server.put(f"plans/{quote(name, safe='')}", {"yaml": _text(options.file)})
    except Refused as refused:
        return _refused_file(options.file, refused)
    if options.json:
        output.print_json(found)
    else:
        print(f"Plan {found['plan']} version {found['number']}: {server.page('plans/' + found['plan'] + '/')}")
    return ExitCode.OK


def _text(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{name} cannot be read: {error}.") from error


def _refused_file(name: str, refused: Refused) -> ExitCode:
    """A problem of the file is a failed check; anything else is an error."""
    if refused.code not in FILE_CODES:
        raise refused
    output.remark(f"{name}: {refused}")
    return ExitCode.FAILED


def _lines(preview: Preview, targets: list[str]) -> list[str]:
    lines = [f"Problem: {text}" for text in preview.problems]
    lines += [f"Left out: {text}" for text in preview.skipped]
    lines += [f"Warning: {text}" for text in [*preview.shared, *preview.warnings]]
    if preview.problems:
        return lines
    if not targets:
        return [*lines, "The plan is valid. Add --host and --target to see trials, time and bytes."]
    return [*lines, *estimate_lines(read(Estimate, preview.estimate)), *_arming(preview.arm)]


def estimate_lines(estimate: Estimate) -> list[str]:
    low, high = output.duration(estimate.seconds_low), output.duration(estimate.seconds_high)
    time = output.duration(estimate.seconds) + (f" ({low} to {high})" if low != high else "")
    unknown = f", without {estimate.unknown_trials} trials of unknown time" if estimate.unknown_trials else ""
    return [
        f"Trials   {estimate.trials}",
        f"Time     {time}{unknown}",
        f"Written  at most {output.size(estimate.bytes_written_max)}",
        f"Space    {output.size(estimate.space_bytes)}",
    ]


def _arming(serials: list[str]) -> list[str]:
    if not serials:
        return []
    options = " ".join(f"--arm {serial}" for serial in serials)
    return [f"This plan overwrites drives or files. To start it: {options}"]
