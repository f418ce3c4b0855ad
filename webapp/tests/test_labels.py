"""Labels of factors, metrics and states have one spelling each: the one in their table.

Templates, scripts and other Python modules take a label from its table. A literal copy, in any capitalisation, or a
retired synonym fails here.
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from webapp.plans.factors import FACTORS
from webapp.results.metrics import METRICS, Missing
from webapp.runs.models import AttemptState, RunState, TrialState

ROOT = Path(settings.BASE_DIR)
METRIC_LABELS = {label for metric in METRICS.values() for label in (metric.label, metric.short)}
STATE_LABELS = {str(label) for states in (RunState, TrialState, AttemptState) for label in states.labels}
# A label of one common word, such as Size or Pattern, is not recognisable as a label.
FACTOR_LABELS = {factor.label for factor in FACTORS.values() if " " in factor.label}
SYNONYMS = {"throughput": "Bandwidth", "least latency": "Minimum latency", "largest latency": "Maximum latency"}
TABLES = (
    "webapp/results/metrics.py", "frontend/src/lib/labels.ts",
)  # fmt: skip
# The same word with another meaning: a count of trials by outcome, the state of a host or of a delivery, statistics
# other than latencies, and the queue depth and NUMA node of a device instead of a workload.
OTHER_MEANINGS = {
    "minimum", "maximum", "mean", "std. dev.", "failed", "done", "running", "planned", "cancelled", "lost", "paused",
    "queued", "accepted", "dispatched", "queue depth", "drive queue depth", "numa node",
}  # fmt: skip
LABELS = {label.casefold(): label for label in METRIC_LABELS | STATE_LABELS | FACTOR_LABELS}


def files(folder: str, suffix: str) -> Iterator[Path]:
    for path in sorted((ROOT / folder).rglob(f"*{suffix}")):
        name = str(path.relative_to(ROOT))
        if name not in TABLES and not {"tests", "migrations", "local"} & set(path.relative_to(ROOT).parts):
            yield path


def template_texts(source: str) -> Iterator[str]:
    """Texts between tags, and texts of attributes that people read."""
    plain = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", "\0", source, flags=re.S)
    yield from re.findall(r">([^<>]+)<", plain)
    yield from re.findall(r'(?:aria-label|title|placeholder)="([^"]*)"', plain)


def script_texts(source: str) -> Iterator[str]:
    yield from re.findall(r'(?:label|text|name|title): "([^"]*)"', source)
    yield from re.findall(r"`([^`]*)`", source)


def python_texts(source: str) -> Iterator[str]:
    tree = ast.parse(source)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = {ast.get_docstring(node, clean=False) for node in ast.walk(tree) if isinstance(node, documented)}
    for node in ast.walk(tree):
        # A label starts with a capital letter or has a blank; other constants are keys.
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and text not in docstrings and not re.fullmatch(r"[a-z0-9_.-]*", text):
            yield text


def wrong(texts: Iterator[str]) -> list[str]:
    found = []
    for text in texts:
        folded = text.strip().casefold()
        if folded in LABELS and folded not in OTHER_MEANINGS:
            found.append(f"{text.strip()!r} is the label {LABELS[folded]!r}: take it from its table")
        found += [
            f"{text.strip()[:60]!r}: write {label!r}"
            for word, label in SYNONYMS.items()
            if re.search(rf"\b{word}\b", folded)
        ]
    return found


SOURCES = [
    *((path, template_texts) for path in files("webapp/screens/templates", ".html")),
    *((path, script_texts) for path in files("frontend/src", ".ts")),
    *(
        (path, python_texts)
        for folder in ("screens", "compare", "results")
        for path in files(f"webapp/{folder}", ".py")
    ),
]


@pytest.mark.parametrize("kind", [template_texts, script_texts, python_texts])
def test_no_label_is_spelled_outside_its_table(kind: object) -> None:
    problems = [
        f"{path.relative_to(ROOT)}: {problem}"
        for path, texts in SOURCES
        if texts is kind
        for problem in wrong(texts(path.read_text()))
    ]
    assert problems == []


def test_the_scripts_have_the_labels_of_the_table_of_metrics() -> None:
    source = (ROOT / "frontend/src/lib/labels.ts").read_text()
    found = dict(re.findall(r"^  (\w+): (\"[^\"]*\"),$", source, flags=re.M))
    assert found
    assert {key: json.loads(text) for key, text in found.items()} == {key: METRICS[key].short for key in found}
    missing = re.search(r"MISSING = \{ notMeasured: (\"[^\"]*\"), noValue: (\"[^\"]*\") \}", source)
    assert missing
    assert [json.loads(text) for text in missing.groups()] == [Missing.NOT_MEASURED, Missing.NO_VALUE]


def test_labels_do_not_contradict_each_other() -> None:
    """No two labels differ only in capitalisation."""
    assert len(LABELS) == len(METRIC_LABELS | STATE_LABELS | FACTOR_LABELS)


def test_a_second_spelling_is_found() -> None:
    assert wrong(iter(["P99 Latency"])) == ["'P99 Latency' is the label 'p99 latency': take it from its table"]
    assert wrong(template_texts("<th>Throughput</th>")) == ["'Throughput': write 'Bandwidth'"]
    assert wrong(script_texts('{ label: "iops" }')) == ["'iops' is the label 'IOPS': take it from its table"]
    assert wrong(python_texts('heading = "Mean Latency"')) != []
    assert wrong(template_texts('<th>{% metric_label "iops" %}</th>')) == []
