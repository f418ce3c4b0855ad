"""docker-compose.yml as Python's values."""

from typing import Any

import yaml

from webapp.tests.system import ROOT

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
