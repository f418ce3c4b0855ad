"""Garbage collector settings of a server process, so that few requests wait for a collection."""

import gc

YOUNG_OBJECTS = 10_000  # new objects before a collection; Python's own 700 are made by a few rows of a table


def configure_garbage_collector() -> None:
    """Call once everything is loaded: later collections leave out what exists now (`gc.freeze`).

    A full collection of those objects would take longer than most pages.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
