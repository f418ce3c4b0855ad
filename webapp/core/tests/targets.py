"""The queries of the documented dashboard."""

import json
from pathlib import Path
from typing import Any

DOCUMENT: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "docs/how-to/monitoring/dashboard.json").read_text(encoding="utf-8")
)


def targets() -> list[dict[str, str]]:
    return [target for panel in DOCUMENT["panels"] for target in panel.get("targets", [])]
