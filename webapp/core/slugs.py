"""Names of objects in addresses."""

from collections.abc import Collection


def free_slug(wanted: str, taken: Collection[str]) -> str:
    """The slug, with a number appended if it is taken."""
    numbered = (f"{wanted}-{number}" for number in range(2, len(taken) + 3))
    return next(slug for slug in (wanted, *numbered) if slug not in taken)
