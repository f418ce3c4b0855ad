"""Messages that name the valid names beside an unknown one."""

from collections.abc import Collection
from difflib import get_close_matches


def instead(unknown: str, known: Collection[str]) -> str:
    """What to use instead of an unknown name: `Did you mean plan? Use plan, state.`"""
    if not known:
        return "It takes none."
    near = get_close_matches(unknown, known, n=1, cutoff=0.6)
    return f"{f'Did you mean {near[0]}? ' if near else ''}Use {', '.join(sorted(known))}."
