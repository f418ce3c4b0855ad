"""What was found, in groups."""

from dataclasses import dataclass

MAX_FOUND = 20


@dataclass(frozen=True)
class Hit:
    title: str
    address: str
    detail: str


@dataclass(frozen=True)
class Group:
    """`more`: there are more than MAX_FOUND, which are not shown."""

    title: str
    hits: tuple[Hit, ...]
    more: bool


def joined(*parts: str) -> str:
    return " · ".join(part for part in parts if part)
