"""Names of objects and parameters: a free one for an address, and the valid ones beside an unknown one."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches

MAX_LENGTH = 100  # of a name to compare: the comparison takes memory and time by its length


def nearest(unknown: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """The most similar known name, or ""."""
    matches = get_close_matches(unknown, list(known), n=1, cutoff=cutoff) if len(unknown) <= MAX_LENGTH else []
    return matches[0] if matches else ""


def instead(unknown: str, known: Collection[str]) -> str:
    """What to use instead of an unknown name: `Did you mean plan? Use plan, state.`"""
    if not known:
        return "It takes none."
    near = nearest(unknown, known)
    return f"{f'Did you mean {near}? ' if near else ''}Use {', '.join(sorted(known))}."


def free_slug(wanted: str, taken: Collection[str]) -> str:
    """The slug, with a number appended if it is taken."""
    numbered = (f"{wanted}-{number}" for number in range(2, len(taken) + 3))
    return next(slug for slug in (wanted, *numbered) if slug not in taken)
