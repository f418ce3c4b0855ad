"""`controllers`: show the RAID controllers as their tools list them, and record the tools' output for a test."""

import argparse
import sys
from pathlib import Path

import msgspec

from worker.cli import formatting
from worker.contract.inventory import Controller
from worker.controllers import drivers_with_a_tool
from worker.controllers.recording import anonymised, call_tools
from worker.link.enrolment import Paths


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("controllers", help="show RAID controllers and their drives, record their tools")
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--record",
        metavar="FILE",
        type=Path,
        help="write the output of the controllers' tools to a new file; it contains no serial number and no host name",
    )
    parser.set_defaults(command=run)


def run(options: argparse.Namespace, _paths: Paths) -> int:
    drivers = tuple(sorted(set(drivers_with_a_tool().values())))
    calls, answers = call_tools(drivers)
    if options.record:
        recording = msgspec.json.encode(anonymised(drivers, calls, answers))
        try:
            with options.record.open("xb") as file:
                file.write(msgspec.json.format(recording, indent=1) + b"\n")
        except OSError as error:
            print(f"sweetspot-worker: {options.record}: {error.strerror}", file=sys.stderr)
            return 2
    if options.json:
        print(msgspec.json.encode(answers).decode())
    else:
        for _, controller in answers.controllers:
            print(_text(controller))
        for driver, problem in answers.problems.items():
            print(f"{driver}: {problem}")
        if not drivers:
            print("This host has no RAID controller that this worker supports.")
    return 0 if answers.controllers else 1


def _text(controller: Controller) -> str:
    head = f"{controller.model} {controller.address}, firmware {controller.firmware}, read with {controller.tool}"
    virtual = [
        (
            each.number,
            each.level,
            formatting.size(each.size_bytes),
            each.state,
            each.write_cache,
            ", ".join(each.drives),
        )
        for each in controller.virtual_drives
    ]
    physical = [
        (each.slot, each.model, formatting.size(each.size_bytes), each.state, each.medium, each.interface)
        for each in controller.physical_drives
    ]
    return "\n\n".join(
        (
            head,
            formatting.table(("virtual drive", "level", "size", "state", "write cache", "slots"), virtual),
            formatting.table(("slot", "model", "size", "state", "medium", "interface"), physical) + "\n",
        )
    )
