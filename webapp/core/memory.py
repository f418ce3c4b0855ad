"""How a server process looks for garbage: not while somebody waits for a page, as far as that can be helped."""

import gc

YOUNG = 10_000  # new objects after which the youngest are looked at; Python's own 700 are made by a few rows of a table


def settle() -> None:
    """Called once everything is loaded: what is there stays, so a full collection, which would take longer than most
    pages, needs not go through it again and again (`gc.freeze`)."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG)
