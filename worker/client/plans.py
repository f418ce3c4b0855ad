"""`plan check`, `plan push` and `plan from`."""

import argparse
import re
import sys
from pathlib import Path
from urllib.parse import quote

from . import output
from .answers import Estimate, Preview, read
from .errors import ExitCode, Refused, UsageError
from .hosts import target_names
from .server import Server

FILE_CODES = ("plan_file_refused", "plan_refused", "text_refused", "job_file_refused")
JOB_FILES = (".fio", ".job", ".ini")
FILE_HELP = "YAML or JSON of a plan, or a fio job file; - for standard input"


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    plan = commands.add_parser("plan", help="check or save a plan file")
    parts = plan.add_subparsers(title="commands", required=True, metavar="COMMAND")
    check = parts.add_parser("check", help="check a plan file and preview a run; saves nothing")
    check.add_argument("file", metavar="FILE", help=FILE_HELP)
    check.add_argument("--host", default="", help="host of the preview; without it, only the plan itself is checked")
    check.add_argument("--target", action="append", default=[], metavar="T", help="target on the host, or host/target")
    check.add_argument("--json", action="store_true")
    _add_job_file_options(check)
    check.set_defaults(command=run_check)
    push = parts.add_parser("push", help="create a plan, or save its next version")
    push.add_argument("file", metavar="FILE", help=FILE_HELP)
    push.add_argument("--name", default="", help="name of the plan; default: name of the file")
    push.add_argument("--json", action="store_true")
    _add_job_file_options(push)
    push.set_defaults(command=run_push)
    convert = parts.add_parser("from", help="print the plan of a fio command or job file as YAML; saves nothing")
    convert.add_argument(
        "source", metavar="SOURCE", help='a command, "fio --name=…", or a job file; - for standard input'
    )
    convert.add_argument("--title", default="", help="title of the plan")
    _add_job_file_options(convert)
    convert.set_defaults(command=run_from)


def _add_job_file_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="value of a variable of a job file: ${NAME}"
    )
    parser.add_argument("--include", action="append", default=[], metavar="FILE", help="file that a job file includes")


def run_check(options: argparse.Namespace, server: Server) -> ExitCode:
    plan = _plan(options, options.file)
    targets = target_names(server, options.host, options.target) if options.host or options.target else []
    try:
        answer = server.post("previews", plan | {"targets": targets}, repeat=True)
    except Refused as refused:
        return _refused_file(options.file, refused)
    preview = read(Preview, answer)
    if options.json:
        output.print_json(answer)
    else:
        about = [preview.note.strip(), ""] if "job_file" in plan else []
        print(output.printable("\n".join([*about, *_lines(preview, targets)])))
    return ExitCode.FAILED if preview.problems or preview.obstacles else ExitCode.OK


def run_push(options: argparse.Namespace, server: Server) -> ExitCode:
    name = options.name or Path(options.file).stem
    if not name or name == "-":
        raise UsageError("The plan needs a name: --name nightly")
    try:
        pushed, is_new = server.put(f"plans/{quote(name, safe='')}", _plan(options, options.file))
    except Refused as refused:
        return _refused_file(options.file, refused)
    if options.json:
        output.print_json(pushed)
    else:
        state = "saved" if is_new else "has this content already, nothing was saved"
        page = server.page(f"plans/{pushed['plan']}/")
        print(f"Plan {pushed['plan']} version {pushed['number']} {state}: {page}")
    return ExitCode.OK


def run_from(options: argparse.Namespace, server: Server) -> ExitCode:
    """A source with a space that is no file is a command."""
    is_file = options.source == "-" or Path(options.source).is_file() or " " not in options.source
    text = _text(options.source) if is_file else options.source
    body = _job_file(options, text) | {"title": options.title}
    try:
        answer = server.post("job-files/yaml", body, repeat=True)
    except Refused as refused:
        return _refused_file("The job file" if is_file else "The command", refused)
    print(output.printable(answer["yaml"].rstrip()))
    return ExitCode.OK


def _plan(options: argparse.Namespace, name: str) -> dict[str, object]:
    """The plan for the server: a fio job file, known by its name or by sections in its text, or a plan file."""
    text = _text(name)
    first = next((line.strip() for line in text.splitlines() if line.strip() and line.strip()[0] not in ";#"), "")
    if Path(name).suffix in JOB_FILES or re.fullmatch(r"\[[^\[\]{},\"]+\]", first):
        return {"job_file": _job_file(options, text)}
    return {"yaml": text}


def _job_file(options: argparse.Namespace, text: str) -> dict[str, object]:
    pairs = [text.partition("=") for text in options.set]
    if wrong := next((name for name, equals, _ in pairs if not (name and equals)), None):
        raise UsageError(f"--set {wrong} has no value. Write it like --set SIZE=1g.")
    variables = {name: value for name, _, value in pairs}
    return {"text": text, "variables": variables, "files": {Path(name).name: _text(name) for name in options.include}}


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
    lines += [f"Cannot be started: {text}" for text in preview.obstacles]
    lines += [f"Left out: {text}" for text in preview.skipped]
    lines += [f"Warning: {text}" for text in [*preview.shared, *preview.warnings]]
    if preview.problems:
        return lines
    if not targets:
        return [*lines, "The plan is valid. Add --host and --target to see trials, time and bytes."]
    expected = sum(target["bytes"] for target in preview.expected)
    return [*lines, *_estimate_lines(read(Estimate, preview.estimate), expected), *_arming(preview.arm)]


def _estimate_lines(estimate: Estimate, expected: int) -> list[str]:
    """`expected`: bytes written, as far as earlier results say; 0 without any."""
    low, high = output.duration(estimate.seconds_low), output.duration(estimate.seconds_high)
    time = output.duration(estimate.seconds) + (f" ({low} to {high})" if low != high else "")
    unknown = f", without {estimate.unknown_trials} trials of unknown time" if estimate.unknown_trials else ""
    return [
        f"Trials   {estimate.trials}",
        f"Time     {time}{unknown}",
        f"Written  {f'about {output.size(expected)}, ' if expected else ''}at most "
        f"{output.size(estimate.bytes_written_max)}",
        f"Space    {output.size(estimate.space_bytes)}",
    ]


def _arming(serials: list[str]) -> list[str]:
    if not serials:
        return []
    options = " ".join(f"--arm {serial}" for serial in serials)
    return [f"This plan overwrites drives or files. To start it: {options}"]
