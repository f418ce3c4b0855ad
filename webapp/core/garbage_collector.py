"""Garbage collector settings of a server process. They make few requests wait for a collection."""

import gc

YOUNG_OBJECTS = 10_000  # new objects before a collection; Python's default of 700 is reached by a few table rows


def configure_garbage_collector() -> None:
    """Call after all code is loaded: later collections skip the objects that exist now (`gc.freeze`).

    A full collection of those objects would take longer than most pages.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
