"""The query parameters that choose results."""

from collections.abc import Iterable

from django.http import HttpRequest

FILTERS: list[dict[str, object]] = [
    {"name": name, "in": "query", "schema": {"type": "string"}, "description": text}
    for name, text in (
        ("run", "number of a run, several as 17,18 or 17..25; may be repeated, as all of these"),
        ("host", "slug of a host"),
        ("target", "host/target; for several targets at once, the first one"),
        ("model", "drive model"),
        ("serial", "serial number of a drive"),
        ("controller", "model of a controller"),
        ("layout", "layout as a plan writes it, or the label of an import"),
        ("tool", "engine, or tool whose output was imported"),
        ("tool_version", "tool and its version, as `fio 3.33`"),
        ("import", "number of an import, several as for run; with `run`, results of both"),
        ("reference", "1 to include published tables (references)"),
        ("configuration", "prefix of the digest of an observed configuration, at least 6 characters"),
        ("repeat", "number of a repeat, or 2..5"),
        ("plan", "slug of a plan"),
        ("label", "label of a host in its group; `no label` for results without one"),
        ("direction", "read, write, trim or `read + write` (only the sum is known)"),
        ("invalid", "1 to include invalid results"),
        (
            "factor.<name>",
            "levels of any factor, e.g. factor.block_size=4096, factor.iodepth=1..64 *2 or factor.scheduler=not set",
        ),
    )
]


def asked_pairs(request: HttpRequest, *without: str) -> Iterable[tuple[str, str]]:
    """Return the query parameters as pairs, except those `without`, which the operation reads itself."""
    return [(key, value) for key, values in request.GET.lists() for value in values if key not in without]
