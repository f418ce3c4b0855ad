"""Trial numbers start at 1 on pages and in the API. The database stores an index from 0."""

_FIRST = 1


def number_of(index: int) -> int:
    return index + _FIRST


def index_of(number: int) -> int:
    return number - _FIRST
