"""A draft as form data: the data that the browser would post without changes."""

from django.http import QueryDict

from webapp.screens.plans.draft import COMMON, Draft, FactorRow

_TEXTS = (
    "title", "note", "repeats", "spread_percent", "repeats_min", "order", "retries", "stop_after", "version",
)  # fmt: skip


def data_of(draft: Draft) -> QueryDict:
    data = QueryDict(mutable=True)
    for name in _TEXTS:
        data[name] = getattr(draft, name)
    data["sequence"] = ",".join(draft.sequence)
    if draft.drop_caches:
        data["drop_caches"] = "on"
    _add_rows(data, COMMON, draft.common)
    for number, part in enumerate(draft.parts):
        key = f"p{number}"
        data.appendlist("part", key)
        data[f"{key}.name"] = part.name
        data.setlist(f"{key}.on", list(part.on))
        data[f"{key}.rules"] = part.rules
        data[f"{key}.streams"] = part.streams
        data[f"{key}.before"] = part.before
        _add_rows(data, key, part.rows)
    return data


def _add_rows(data: QueryDict, key: str, rows: tuple[FactorRow, ...]) -> None:
    for row in rows:
        data.appendlist(f"{key}.factor", row.factor)
        data.appendlist(f"{key}.levels", row.levels)
