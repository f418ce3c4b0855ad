"""The command line: text for people, `--json` for programs. `errors` and docs/reference/command-line.md: exit codes."""

import argparse
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType

from . import __version__, compare, hosts, imports, output, plans, results, runs
from .configuration import read_configuration
from .errors import ClientError, ExitCode
from .server import Server

DESCRIPTION = "Starts benchmark runs on a Sweetspot server, waits for them and compares their results."
EPILOG = """\
settings:
  SWEETSPOT_URL      address of the server
  SWEETSPOT_TOKEN    API token, from the page Account
  SWEETSPOT_CA_FILE  certificate authority of the server, PEM
or the same as url, token and ca_file in ~/.config/sweetspot/config.toml (mode 600)

exit codes:
  0 done   1 failed, cannot run or is worse   2 wrong usage or setup   3 server unreachable
  4 refused by the server   5 cannot tell   6 waiting timed out   7 server failed
  8 contact lost while waiting   130 interrupted
"""
Connect = Callable[[argparse.Namespace], Server]


def main(argv: Sequence[str] | None = None, *, connect: Connect | None = None) -> int:
    options = build_parser().parse_args(argv)
    try:
        code: ExitCode = options.command(options, (connect or _connected)(options))
        sys.stdout.flush()
        return code
    except ClientError as error:
        output.remark(f"sweetspot: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        output.remark("sweetspot: interrupted")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the end of Python writes nothing
        return ExitCode.FAILED


def _connected(options: argparse.Namespace) -> Server:
    signal.signal(signal.SIGTERM, _interrupt)  # how CI systems cancel a job
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.isatty():
            stream.reconfigure(encoding="utf-8")  # also where the system's files have another encoding
    return Server(read_configuration(os.environ, url=options.url, ca_file=options.ca_file))


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sweetspot", description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"sweetspot {__version__}")
    parser.add_argument("--url", default="", help="address of the server (or SWEETSPOT_URL)")
    parser.add_argument("--ca-file", default="", metavar="FILE", help="certificate authority (or SWEETSPOT_CA_FILE)")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for module in (plans, runs, results, compare, imports, hosts):
        module.add_to(commands)
    return parser
