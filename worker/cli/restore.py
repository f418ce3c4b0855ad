"""`restore`: restore changed settings and take down layouts, after a person has confirmed the list."""

import argparse
import sys
from typing import TextIO

import msgspec

from worker import layouts
from worker.contract.items import SettingRestored
from worker.journal import BY_HAND, Baseline, Journal, LayoutRecord
from worker.link.enrolment import ConfigError, Paths, prepare_state, sole_use
from worker.settings.restore import plan_words, restored


class Work(msgspec.Struct, frozen=True):
    """What one call of `restore` does."""

    settings: tuple[Baseline, ...]
    layouts: tuple[LayoutRecord, ...]


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("restore", help="restore changed settings and take down layouts left by runs")
    only = "take down only this layout; also works for layouts built by hand"
    parser.add_argument("--layout", action="append", default=[], metavar="KEY", help=only)
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    parser.add_argument("--json", action="store_true", help="print the results as JSON; messages go to stderr")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace, paths: Paths) -> int:
    """Layouts that were built by hand are taken down only with --layout."""
    prepare_state(paths.state)
    messages = sys.stderr if options.json else sys.stdout
    with sole_use(paths.state):
        journal = Journal(paths.journal)
        work = _work(options.layout, journal)
        if (work.settings or work.layouts) and not _confirmed(work, journal, messages, yes=options.yes):
            print("Nothing was changed.", file=messages)
            return 1
        results = [
            *restored(work.settings, journal),
            *layouts.restore(work.layouts, state=paths.state, journal=journal),
        ]
        kept = [] if options.layout else [_kept_line(record) for record in journal.layouts(BY_HAND)]
        unreadable = _unreadable_lines(journal)
    if options.json:
        print(msgspec.json.encode(results).decode())
    lines = [*([] if options.json else map(restored_line, results)), *kept, *unreadable]
    if not options.json and not lines:
        lines = ["Nothing to restore."]
    print("".join(f"{line}\n" for line in lines), end="", file=messages)
    return 0 if all(item.restored for item in results) and not unreadable else 1


def _work(keys: list[str], journal: Journal) -> Work:
    if keys:
        return Work((), _named(keys, journal))
    return Work(journal.baselines(), layouts.of_runs(journal))


def _named(keys: list[str], journal: Journal) -> tuple[LayoutRecord, ...]:
    """Raises ConfigError for a key that the journal does not know."""
    known = {record.key: record for record in journal.layouts()}
    if unknown := [key for key in keys if key not in known]:
        listed = ", ".join(f"{key} ({record.line})" for key, record in known.items()) or "none"
        raise ConfigError("layout_unknown", f"There is no layout {unknown[0]!r} on this host. Layouts here: {listed}.")
    return tuple(known[key] for key in dict.fromkeys(keys))


def _confirmed(work: Work, journal: Journal, messages: TextIO, *, yes: bool) -> bool:
    """List the changes and ask. Raises ConfigError if there is no terminal to ask on."""
    lines = [*(plan_words(kept, journal) for kept in work.settings), *map(_removal_line, work.layouts)]
    print("This command makes these changes:", *(f"  {line}" for line in lines), sep="\n", file=messages)
    if yes:
        return True
    if not sys.stdin.isatty():
        raise ConfigError("not_confirmed", "No terminal to ask for confirmation, nothing was changed. Use --yes.")
    print("Continue? (y/N) ", end="", flush=True, file=messages)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _removal_line(record: LayoutRecord) -> str:
    drives = ", ".join(drive.path for drive in record.drives)
    return f"layout {record.key} ({record.line}): take down; all data of the layout on {drives} is lost"


def _kept_line(record: LayoutRecord) -> str:
    return (
        f"Layout {record.key} ({record.line}) was built by hand and is kept; run “{layouts.removal_command(record)}” "
        "to take it down."
    )


def _unreadable_lines(journal: Journal) -> list[str]:
    count = journal.unreadable()
    words = (
        f"{count} changed settings or layouts cannot be read from the journal and were not restored. "
        "“sweetspot-worker doctor” shows where they are."
    )
    return [words] if count else []


def restored_line(item: SettingRestored) -> str:
    name = f"{item.name} of {item.device or 'the host'}"
    if item.restored:
        return f"{name}: restored to {item.observed}"
    return f"{name}: NOT restored to {item.value}: {item.note}"
