"""All addresses that the server has, found in its URL patterns, and how to fill them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.urls import URLPattern, URLResolver, get_resolver

from webapp.api.urls import api

API_ROOT = "api/v1/"
_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>|\{(\w+)\}")
_AREA = re.compile(r"^(?:api/v1/)?([\w-]+)")


class SampleMissing(LookupError):
    """An address has a parameter for which nobody has said what to put there."""


@dataclass(frozen=True)
class Address:
    """`name` is how the table of access calls it, `route` the pattern, e.g. plans/<slug:slug>/."""

    name: str
    route: str

    def filled(self, samples: Mapping[str, object]) -> str:
        """The path, with the sample `area/parameter` (plans/slug) for each parameter. Raises SampleMissing."""
        area = _AREA.match(self.route)

        def sample(found: re.Match[str]) -> str:
            key = f"{area.group(1) if area else ''}/{found.group(1) or found.group(2)}"
            if key not in samples:
                raise SampleMissing(
                    f"{self.route}: no sample for {key}. webapp/tests/samples.py says what stands there."
                )
            return str(samples[key])

        return "/" + _PARAMETER.sub(sample, self.route)


def pages() -> list[Address]:
    """Everything that is no operation of the API: pages, their data, and what workers call."""
    operations = {_neutral(address.route) for address in operations_of_api()}
    found = _walk(get_resolver(), "", "")
    return [address for address in found if _neutral(address.route) not in operations]


def operations_of_api() -> list[Address]:
    """By method and path, e.g. `GET plans/{slug}`."""
    paths = api.get_openapi_schema()["paths"]
    return [
        Address(f"{method.upper()} {path.removeprefix('/' + API_ROOT)}", path.removeprefix("/"))
        for path, methods in paths.items()
        for method in methods
    ]


def _neutral(route: str) -> str:
    return _PARAMETER.sub("<>", route)


def _walk(resolver: URLResolver, route: str, namespace: str) -> Iterator[Address]:
    for entry in resolver.url_patterns:
        here = route + str(entry.pattern)
        if isinstance(entry, URLPattern):
            yield Address(f"{namespace}{entry.name}", here)
        else:
            yield from _walk(entry, here, f"{namespace}{entry.namespace}:" if entry.namespace else namespace)
