"""`restore`: undo what the worker has changed on this host, after a person has confirmed the list.

`forget`: drop entries of the journal by name without undoing anything.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TextIO

import msgspec

from worker.contract.items import SettingRestored
from worker.journal import BY_HAND, Baseline, DrivePassword, Journal, LayoutRecord, TemporaryFolder
from worker.layouts import building
from worker.link.enrolment import ConfigError, Paths, prepare_state, sole_use
from worker.orders.restore import remove_passwords
from worker.process.scope import forget_scope, stuck_scopes
from worker.settings.restore import plan_words, restored
from worker.temporary import remove_recorded


class Work(msgspec.Struct, frozen=True):
    """What one call of `restore` does."""

    settings: tuple[Baseline, ...]
    layouts: tuple[LayoutRecord, ...]
    passwords: tuple[DrivePassword, ...] = ()
    folders: tuple[TemporaryFolder, ...] = ()


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("restore", help="restore changed settings and take down layouts left by runs")
    only = "take down only this layout; also works for layouts built by hand"
    parser.add_argument("--layout", action="append", default=[], metavar="KEY", help=only)
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    parser.add_argument("--json", action="store_true", help="print the results as JSON; messages go to stderr")
    parser.set_defaults(command=run)
    words = "forget entries of the journal without undoing anything; without a name, list them"
    forgetting = commands.add_parser("forget", help=words)
    forgetting.add_argument("name", nargs="*", help="name of an entry, as listed")
    forgetting.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    forgetting.set_defaults(command=forget)


def run(options: argparse.Namespace, paths: Paths) -> int:
    """Layouts that were built by hand are taken down only with --layout."""
    prepare_state(paths.state)
    messages = sys.stderr if options.json else sys.stdout
    with sole_use(paths.state):
        journal = Journal(paths.journal)
        journal.reserve.free_if_needed()
        work = _work(options.layout, journal)
        if not confirmed(_lines(work, journal), messages, yes=options.yes):
            print("Nothing was changed.", file=messages)
            return 1
        results = [
            *restored(work.settings, journal),
            *(remove_recorded(journal) if work.folders else ()),
            *building.restore(work.layouts, state=paths.state, journal=journal),
            *(remove_passwords(journal, paths.state) if work.passwords else ()),
        ]
        kept_lines = [] if options.layout else [_kept_line(record) for record in journal.layouts(BY_HAND)]
        unreadable = _unreadable_lines(journal)
    if options.json:
        print(msgspec.json.encode(results).decode())
    lines = [*([] if options.json else map(restored_line, results)), *kept_lines, *unreadable]
    if not options.json and not lines:
        lines = ["Nothing to restore."]
    print("".join(f"{line}\n" for line in lines), end="", file=messages)
    return 0 if all(item.restored for item in results) and not unreadable else 1


def _work(keys: list[str], journal: Journal) -> Work:
    if keys:
        return Work((), _named(keys, journal))
    return Work(journal.baselines(), building.of_runs(journal), journal.passwords(), journal.folders())


def _named(keys: list[str], journal: Journal) -> tuple[LayoutRecord, ...]:
    """Raises ConfigError for a key that the journal does not know."""
    known = {record.key: record for record in journal.layouts()}
    if unknown := [key for key in keys if key not in known]:
        listed = ", ".join(f"{key} ({record.line})" for key, record in known.items()) or "none"
        raise ConfigError("layout_unknown", f"There is no layout {unknown[0]!r} on this host. Layouts here: {listed}.")
    return tuple(known[key] for key in dict.fromkeys(keys))


def _lines(work: Work, journal: Journal) -> list[str]:
    """What `restore` would do."""
    settings = (plan_words(baseline, journal) for baseline in work.settings)
    passwords = (f"{known.device} ({known.serial}): remove its password" for known in work.passwords)
    folders = (f"{folder.path}: remove this temporary folder" for folder in work.folders)
    return [*settings, *folders, *map(_removal_line, work.layouts), *passwords]


def confirmed(lines: list[str], messages: TextIO, *, yes: bool) -> bool:
    """List the changes and ask, if there are any. Raises ConfigError if there is no terminal to ask on."""
    if not lines:
        return True
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
        f"Layout {record.key} ({record.line}) was built by hand and is kept; run “{building.removal_command(record)}” "
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


# ---- forget


class Entry(msgspec.Struct, frozen=True):
    """Something that the worker still has to undo."""

    name: str
    words: str
    drop: Callable[[], object]


def forget(options: argparse.Namespace, paths: Paths) -> int:
    prepare_state(paths.state)
    with sole_use(paths.state):
        entries = open_entries(Journal(paths.journal), paths.state)
        if not options.name:
            print("\n".join(f"{entry.name}: {entry.words}" for entry in entries) or "The journal has no entries.")
            return 0
        chosen = [_entry(name, entries) for name in options.name]
        lines = [f"forget {entry.name}: {entry.words}; it stays as it is" for entry in chosen]
        if not confirmed(lines, sys.stdout, yes=options.yes):
            print("Nothing was changed.")
            return 1
        for entry in chosen:
            entry.drop()
    return 0


def open_entries(journal: Journal, state: Path) -> list[Entry]:
    """Everything that the worker still has to undo."""
    settings = (
        Entry(
            f"{baseline.name}@{baseline.device or 'host'}@{baseline.run}",
            plan_words(baseline, journal),
            partial(journal.drop_baseline, baseline),
        )
        for baseline in journal.baselines()
    )
    built = (Entry(each.key, _removal_line(each), partial(journal.drop_layout, each.key)) for each in journal.layouts())
    passwords = (
        Entry(
            f"password@{known.serial}",
            f"{known.device} has the password {known.password!r}",
            partial(journal.drop_password, known.stable_id),
        )
        for known in journal.passwords()
    )
    folders = (
        Entry(folder.path, "a temporary folder", partial(journal.drop_folder, folder)) for folder in journal.folders()
    )
    stuck = (
        Entry(
            scope.name,
            f"a program that cannot be killed; {', '.join(scope.drives) or 'no drive'} is quarantined",
            partial(forget_scope, state, scope.name),
        )
        for scope in stuck_scopes(state)
    )
    return [*settings, *folders, *built, *passwords, *stuck]


def _entry(name: str, entries: list[Entry]) -> Entry:
    entry_of_name = next((entry for entry in entries if entry.name == name), None)
    if entry_of_name is None:
        listed = ", ".join(entry.name for entry in entries) or "none"
        raise ConfigError("entry_unknown", f"The journal has no entry {name!r}. Entries: {listed}.")
    return entry_of_name
