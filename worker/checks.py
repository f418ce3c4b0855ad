"""Results of the checks of `sweetspot-worker doctor`."""

from enum import StrEnum

import msgspec


class State(StrEnum):
    OK = "ok"
    NOTE = "note"
    BROKEN = "broken"


class Check(msgspec.Struct, frozen=True):
    """The result of one check, and advice."""

    name: str
    state: State
    found: str
    advice: str = ""
