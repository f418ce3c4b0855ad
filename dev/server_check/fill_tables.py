"""Add a row to each table that has none. Run by `manage.py shell`, so that an upgrade finds data in every table.

The rows are valid for the database, but most of them mean nothing.
"""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.db import models, transaction

NOW = datetime.now(UTC)  # old rows of some tables are deleted after weeks
VALUES: dict[Any, Any] = {  # class of a field -> its value
    models.BooleanField: False, models.DateTimeField: NOW, models.DateField: NOW.date(), models.BinaryField: b"x",
    models.JSONField: {}, models.FloatField: 1.0, models.DecimalField: 1, models.UUIDField: uuid.UUID(int=1),
    models.CharField: "1", models.TextField: "1", models.IntegerField: 1,
}  # fmt: skip
# Values that a constraint of the database requires, by table.
REQUIRED: dict[str, dict[str, Any]] = {
    "drivereading": {"moment": "before"},
    "endurancerating": {"rated_bytes": 10**15},
    "maintenancewindow": {"starts_at": NOW + timedelta(days=1000), "ends_at": NOW + timedelta(days=1001)},
    "result": {"direction": "read"},
    "schedule": {"trigger": "cron", "cron": "0 0 * * *"},
    "subscription": {"events": ["run_done"]},
    "target": {"kind": "directory"},
    "workerlogline": {"level": "info"},
}
REQUIRED_RELATIONS = {"attempt": ("run", "trial"), "baseline": ("run",), "result": ("origin",)}


def own_models() -> list[type[models.Model]]:
    return [model for model in apps.get_models() if model.__module__.startswith("webapp.")]


def fill(model: Any) -> Any:
    """The first row of the table, which is created if there is none. Raises IntegrityError."""
    if first := model._default_manager.first():
        return first
    name, row = model._meta.model_name, model()
    for field in model._meta.concrete_fields:
        if isinstance(field, models.ForeignKey):
            if not field.null or field.name in REQUIRED_RELATIONS.get(name, ()):
                setattr(row, field.name, fill(field.related_model))
        elif field.name in REQUIRED.get(name, {}):
            setattr(row, field.name, REQUIRED[name][field.name])
        elif not (field.has_default() or field.null or field.blank or isinstance(field, models.AutoField)):
            setattr(row, field.name, _value(field))
    with transaction.atomic():
        row.save(force_insert=True)
    return row


def _value(field: Any) -> Any:
    if field.choices:
        return field.choices[0][0]
    return [] if isinstance(field, ArrayField) else next(VALUES[kind] for kind in VALUES if isinstance(field, kind))
