"""The examples that the editor's scripts read are exactly what the server writes."""

import json
from pathlib import Path

import msgspec
import pytest
from django.conf import settings

from webapp.screens.payloads import Payload
from webapp.screens.plans.previewing import PlanAnswer, PlanJobs

VECTORS = Path(settings.BASE_DIR) / "frontend/tests/vectors"


@pytest.mark.parametrize(("name", "kind"), [("planJobs.json", PlanJobs), ("planAnswer.json", PlanAnswer)])
def test_it_writes_the_example_that_the_scripts_read(name: str, kind: type[Payload]) -> None:
    text = (VECTORS / name).read_text()
    assert json.loads(msgspec.json.encode(msgspec.json.decode(text, type=kind))) == json.loads(text)
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(json.dumps({**json.loads(text), "extra": 1}), type=kind)
