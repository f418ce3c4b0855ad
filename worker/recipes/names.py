"""File names and sizes in fio's job-file words.

What fio 3.33 does to a value in a job file, each tried: `;` and `#` cut it off, `${NAME}` is
replaced from the environment, `$ncpus`, `$jobname` and others are replaced and then the value
is handed to a shell with `bc`, `:` separates file names unless written `\\:`, and `-` means
standard input. Characters that cannot be written safely are therefore refused.
"""

from worker.contract.workload import KIB, MIB, Stream, TargetKind, Workload
from worker.recipes.base import RecipeError

FORBIDDEN = {
    "$": "fio replaces what follows it",
    ";": "fio takes the rest for a comment",
    "#": "fio takes the rest for a comment",
    "\\": "fio takes it for an escape",
    "`": "fio may hand it to a shell",
}
UNITS = ((1024 * MIB, "g"), (MIB, "m"), (KIB, "k"))


def path_problem(path: str) -> str:
    """Why fio could not be given this path as it is, in words; "" if it can."""
    for character in path:
        if not character.isprintable():
            return f"the path {path!r} holds the unprintable character {character!r}: rename it"
        if character in FORBIDDEN:
            return f"the path {path!r} holds {character!r} ({FORBIDDEN[character]}): rename it or use a link without it"
    if path != path.strip():
        return f"the path {path!r} begins or ends with a blank, which fio drops: rename it"
    if path.rpartition("/")[2] in ("", "-", ".", ".."):
        return f"the path {path!r} names no file that fio can open: a name is needed at its end"
    return ""


def fio_filename(path: str) -> str:
    """The path as it is written after `filename=`. Raises RecipeError."""
    problem = path_problem(path)
    if problem:
        raise RecipeError(f"This target cannot be given to fio: {problem}.")
    return path.replace(":", "\\:")


def fio_size(size_bytes: int) -> str:
    """`4k`, `1m`, `16g`: binary units, fio's default (kb_base=1024); plain bytes where none divides it."""
    for unit_bytes, letter in UNITS:
        if size_bytes % unit_bytes == 0 and size_bytes:
            return f"{size_bytes // unit_bytes}{letter}"
    return str(size_bytes)


def scratch_names(work: Workload) -> tuple[str, ...]:
    """The files a stream uses in a directory target. The size is in the name: streams of one size share their files."""
    return tuple(f"sweetspot.{work.size_bytes}.{number}" for number in range(work.files))


def target_names(stream: Stream) -> tuple[str, ...]:
    """What fio opens, unescaped: a device's path, a file's base name, or the scratch files."""
    if stream.target.kind is TargetKind.BLOCK:
        return (stream.target.path,)
    if stream.target.kind is TargetKind.FILE:
        return (stream.target.path.rpartition("/")[2],)
    return scratch_names(stream.workload)
