"""What a rule accepts."""

from typing import NamedTuple


class Window(NamedTuple):
    """Whole seconds since the measured part began; the end is that of the series."""

    from_s: int
    to_s: int
    interval: float | None = None  # half width of the 95 % interval of the mean, as a fraction of it
