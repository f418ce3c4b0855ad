"""The examples that the scripts' checks read are exactly what the server writes."""

import json
from pathlib import Path

import msgspec
import pytest
from django.conf import settings

from webapp.screens.bench.charts import BenchCharts
from webapp.screens.bench.picker import Shares
from webapp.screens.explore.answer import LatencyCharts, MeansCharts, ScatterCharts, TimeCharts
from webapp.screens.hosts.views import Enrolment, LogTail
from webapp.screens.imports.upload_views import Added, Begun, ColumnPreview, ImportProblem, LabelPreview
from webapp.screens.payloads import LiveRun, Marks, Payload, SearchHits
from webapp.screens.plans.previewing import PlanAnswer, PlanJobs
from webapp.screens.trend.charts import TrendChart

VECTORS = Path(settings.BASE_DIR) / "frontend/tests/vectors"
EXAMPLES: list[tuple[str, type[Payload]]] = [
    ("live.json", LiveRun),
    ("bench.json", BenchCharts),
    ("shares.json", Shares),
    ("compare.json", MeansCharts),
    ("scatter.json", ScatterCharts),
    ("latency.json", LatencyCharts),
    ("timeline.json", TimeCharts),
    ("enrolment.json", Enrolment),
    ("logTail.json", LogTail),
    ("marks.json", Marks),
    ("searchHits.json", SearchHits),
    ("importBegun.json", Begun),
    ("importAdded.json", Added),
    ("importProblem.json", ImportProblem),
    ("columnPreview.json", ColumnPreview),
    ("labelPreview.json", LabelPreview),
    ("planJobs.json", PlanJobs),
    ("planAnswer.json", PlanAnswer),
    ("trend.json", TrendChart),
]


@pytest.mark.parametrize(("name", "kind"), EXAMPLES)
def test_it_writes_the_example_that_the_scripts_read(name: str, kind: type[Payload]) -> None:
    text = (VECTORS / name).read_text()
    assert json.loads(msgspec.json.encode(msgspec.json.decode(text, type=kind))) == json.loads(text)


@pytest.mark.parametrize(("name", "kind"), EXAMPLES)
def test_it_refuses_a_field_that_is_not_in_the_struct(name: str, kind: type[Payload]) -> None:
    text = json.dumps({**json.loads((VECTORS / name).read_text()), "extra": 1})
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=kind)
