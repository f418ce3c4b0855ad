"""Trials are numbered from 1 wherever people and the API meet them. What is stored is an index, from 0."""

_FIRST = 1


def number_of(index: int) -> int:
    return index + _FIRST


def index_of(number: int) -> int:
    return number - _FIRST
