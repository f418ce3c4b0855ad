"""File names and sizes in the syntax of fio job files.

Tested behaviour of fio 3.33 for values in a job file: `;` and `#` start a comment, `${NAME}` is
replaced from the environment, `$ncpus`, `$jobname` and others are replaced and the value is then
passed to a shell with `bc`, `:` separates file names unless written `\\:`, and `-` means standard
input. Characters that cannot be written safely are therefore refused.
"""

from worker.contract.workload import KIB, MIB
from worker.recipes.base import RecipeError

FORBIDDEN = {
    "$": "fio replaces the text after it",
    ";": "fio treats the rest as a comment",
    "#": "fio treats the rest as a comment",
    "\\": "fio treats it as an escape character",
    "`": "fio may pass it to a shell",
}
UNITS = ((1024 * MIB, "g"), (MIB, "m"), (KIB, "k"))


def path_problem(path: str) -> str:
    """Why this path cannot be used in a job file; "" if it can."""
    for character in path:
        if not character.isprintable():
            return f"the path {path!r} contains the unprintable character {character!r}: rename it"
        if character in FORBIDDEN:
            return f"the path {path!r} contains {character!r} ({FORBIDDEN[character]}): rename it or use a link"
    if path != path.strip():
        return f"the path {path!r} starts or ends with a space, which fio drops: rename it"
    if path.rpartition("/")[2] in ("", "-", ".", ".."):
        return f"the path {path!r} has no file name at its end"
    return ""


def escaped_path(path: str) -> str:
    """The escaped path for `filename=`. Raises RecipeError."""
    problem = path_problem(path)
    if problem:
        raise RecipeError(f"fio cannot use this target: {problem}.")
    return path.replace(":", "\\:")


def size_text(size_bytes: int) -> str:
    """`4k`, `1m`, `16g`: binary units, fio's default (kb_base=1024); bytes if no unit divides the size."""
    for unit_bytes, letter in UNITS:
        if size_bytes % unit_bytes == 0 and size_bytes:
            return f"{size_bytes // unit_bytes}{letter}"
    return str(size_bytes)
