"""Walks files and folders.

Nothing is written except nested archives and logs of tar archives, which go to unnamed temporary files. Links, devices,
absolute paths and paths with `..` are refused.
"""

import os
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import nsmallest
from pathlib import Path

from webapp.imports.reading.contents import Found, content
from webapp.imports.reading.limits import MIB, Budget, Limits, Refused
from webapp.imports.reading.order import in_order


def read(path: Path, limits: Limits | None = None) -> Found:
    """Every file of a path: its text, or why it is left out. Files are in the order of `order.in_order`. After the
    files that the limits allow, the others are counted, and the last Refused says how many they are."""
    return _read({"" if path.is_dir() else path.name: path}, Budget(limits or Limits()))


def read_all(paths: Sequence[Path], limits: Limits | None = None) -> Found:
    """Every file of several paths, as if they were in one folder. Their names begin where the paths differ."""
    if len(paths) == 1:
        return read(paths[0], limits)
    whole = [Path(os.path.abspath(path)) for path in paths]  # noqa: PTH100  resolve() follows links
    top = Path(os.path.commonpath([path.parent for path in whole]))
    return _read({str(path.relative_to(top)): path for path in whole}, Budget(limits or Limits()))


def read_in_turn(files: Iterable[tuple[str, Path]], limits: Limits | None = None) -> Found:
    """Every file of several files and archives by their names, with common limits. Each one is read before the next one
    is taken."""
    budget = Budget(limits or Limits())
    for name, path in files:
        yield from _clocked(_entry(path, name, budget), budget)
    yield from _left_out(budget)


def _read(paths: Mapping[str, Path], budget: Budget) -> Found:
    """`paths` by their names."""
    for name in sorted(paths, key=in_order):
        yield from _clocked(_entry(paths[name], name, budget), budget)
    yield from _left_out(budget)


def _clocked(files: Found, budget: Budget) -> Found:
    """Count the time of the reading, without that of the caller between two files."""
    while True:
        budget.start_clock()
        file = next(files, None)
        budget.stop_clock()
        if file is None:
            return
        yield file
        del file  # otherwise its text is in memory while the next one is read


def _left_out(budget: Budget) -> Found:
    if budget.left_out:
        code = budget.limit_reached.code if budget.limit_reached else "import_too_many_files"
        most = f"At most {budget.limits.files:,} files and {budget.limits.total_bytes // MIB:,} MiB are read at once."
        if code not in ("import_too_many_files", "import_too_many_bytes") and budget.limit_reached:
            most = f"{most} {budget.limit_reached.message}"
        yield Refused("", f"{most} Number of files left out: {budget.left_out:,}. Import them in several parts.", code)


def _entry(path: Path, shown: str, budget: Budget) -> Found:
    if path.is_symlink():
        yield Refused(shown or path.name, "Links are not followed.", "import_link")
    elif path.is_dir():
        yield from _folder(path, shown, budget)
    else:
        yield from _on_disk(path, shown, budget)


def _folder(folder: Path, inside: str, budget: Budget) -> Found:
    if inside.count("/") >= budget.limits.folders:
        yield Refused(inside, f"The folders are nested more than {budget.limits.folders} deep.")
        return
    done: set[str] = set()
    while True:
        # One more than may be read: the first file that is left out tells whether it cuts the logs of a trial.
        most = budget.files_left + 1
        try:
            names = _names(folder, most, done)
        except OSError as error:
            yield Refused(inside or folder.name, f"The folder cannot be read: {error.strerror}.")
            return
        for name in names:
            yield from _entry(folder / name, f"{inside}/{name}" if inside else name, budget)
        if len(names) < most:
            return
        done.update(names)
        if budget.files_left == 0:
            yield budget.leave_out(inside, _count(folder, budget.limits.folders, done))
            return


def _names(folder: Path, most: int, done: Collection[str]) -> list[str]:
    """The first names of a folder that are not done, at most so many. Raises OSError."""
    with os.scandir(folder) as entries:
        return nsmallest(most, (entry.name for entry in entries if entry.name not in done), key=in_order)


def _count(folder: Path | str, depth: int, done: Collection[str] = ()) -> int:
    """The number of files below a folder, without those that are done."""
    try:
        with os.scandir(folder) as entries:
            return sum(
                _count(entry.path, depth - 1) if depth and entry.is_dir(follow_symlinks=False) else 1
                for entry in entries
                if entry.name not in done
            )
    except OSError:
        return 1


def _on_disk(path: Path, shown: str, budget: Budget) -> Found:
    if not budget.take_file():
        yield budget.leave_out(shown)
        return
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # a pipe must not wait for a writer
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                yield Refused(shown, "This is not a regular file.")
                return
            budget.count_on_disk(status.st_size)
            yield from content(file, shown, budget, size=status.st_size)
    except OSError as error:
        yield Refused(shown, f"The file cannot be read: {error.strerror}.")
