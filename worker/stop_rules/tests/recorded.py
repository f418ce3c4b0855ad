"""Recorded series: files with `name: I/Os of each second`, one series a line; # starts a comment."""

from pathlib import Path

DATA = Path(__file__).parent / "data"


def read_series(path: Path) -> dict[str, list[float]]:
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    named = (line.split(":", 1) for line in lines)
    return {name: [float(rate) for rate in rates.split()] for name, rates in named}


KINGSTON = read_series(DATA / "kingston-dc500m.txt")
LOOPS = read_series(DATA / "loop-drives.txt")
