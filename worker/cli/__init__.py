"""The command line: text for people, `--json` for programs.

Exit status: 0 done, 1 failed or something is broken, 2 wrong usage or setup.
"""

import argparse
import sqlite3
import sys
from collections.abc import Sequence

from worker import __version__, log
from worker.cli import commands, doctor, enrol, layout, restore, run_file, sandbox, uninstall
from worker.journal import JournalError
from worker.kernel.files import is_full_disk
from worker.link.enrolment import POLICY_VARIABLE, STATE_VARIABLE, ConfigError, find_paths

DESCRIPTION = "Runs storage benchmarks on this host, for a Sweetspot server or from a file."


def main(argv: Sequence[str] | None = None) -> int:
    options = build_parser().parse_args(argv)
    log.set_up(options.log_level)
    paths = find_paths(state=options.state, policy=options.policy)
    try:
        status: int = options.command(options, paths)
        return status
    except (ConfigError, JournalError) as error:
        print(f"sweetspot-worker: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 1
    except (OSError, sqlite3.OperationalError) as error:
        if not is_full_disk(error):
            raise
        print(f"sweetspot-worker: The disk of {paths.state} or of a target is full: {error}", file=sys.stderr)
        return 2


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sweetspot-worker", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"sweetspot-worker {__version__}")
    parser.add_argument("--state", metavar="DIR", help=f"state directory (or {STATE_VARIABLE})")
    parser.add_argument("--policy", metavar="FILE", help=f"policy file (or {POLICY_VARIABLE})")
    parser.add_argument("--log-level", default="INFO", metavar="LEVEL", help="DEBUG, INFO, WARNING or ERROR")
    commands_of = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for module in (doctor, enrol, run_file, commands, restore, layout, sandbox, uninstall):
        module.add_to(commands_of)
    return parser
