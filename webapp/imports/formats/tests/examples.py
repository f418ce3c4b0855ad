"""The example files of the formats: `data/<format>/<version or variant>`.

Their README says where each form was seen.
"""

import os
from pathlib import Path

from webapp.imports.formats import FORMATS
from webapp.imports.measurement import Measurement
from worker.contract.items import Direction

DATA = Path(__file__).parent / "data"
EXAMPLES = sorted(path for name in FORMATS for path in (DATA / name).iterdir())
IDS = [f"{path.parent.name}/{path.name}" for path in EXAMPLES]
CORPUS = Path(os.environ.get("SWEETSPOT_FIO_RESULTS", "/nonexistent"))  # a large collection of real results


def text(name: str) -> str:
    return (DATA / name).read_text()


def parsed(name: str) -> list[Measurement]:
    return FORMATS[name.split("/")[0]].parse(text(name))


def only(found: list[Measurement], direction: Direction | None = None, **factors: object) -> Measurement:
    """The one measurement with this direction and these factors."""
    (one,) = [m for m in found if m.direction is direction and factors.items() <= m.factors.items()]
    return one
