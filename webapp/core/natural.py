"""The natural order of texts with numbers: disk2 before disk16."""

import re

_NUMBER = re.compile(r"([0-9]{1,18})")


def natural_key(text: str) -> tuple[str | int, ...]:
    """A key to sort by. Texts and numbers alternate, so that numbers are compared only with numbers."""
    return tuple(int(piece) if place % 2 else piece for place, piece in enumerate(_NUMBER.split(text)))
