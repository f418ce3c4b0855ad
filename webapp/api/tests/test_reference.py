"""The reference page shows every operation and object, and its links lead somewhere."""

import re

from django.test import Client

from webapp.api.openapi import objects, operations
from webapp.api.urls import api


def test_it_shows_every_operation_and_object_and_has_no_dead_link(client: Client) -> None:
    page = client.get("/api/v1/docs").content.decode()
    anchors = re.findall(r' id="([^"]+)"', page)
    assert len(anchors) == len(set(anchors))
    shown = [one.anchor for _, group in operations(api) for one in group] + [one.name for one in objects(api)]
    assert set(shown) <= set(anchors)
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(anchors)


def test_it_shows_types_defaults_and_examples() -> None:
    start = next(one for _, group in operations(api) for one in group if one.anchor == "post-api-v1-runs")
    assert (start.body, start.status, start.answer) == (("StartIn",), "201", "RunDetail")
    assert '"request_id"' in start.example
    fields = {one.name: one for one in next(one for one in objects(api) if one.name == "StartIn").fields}
    assert (fields["targets"].type, fields["targets"].required) == ("list of string", True)
    assert (fields["version"].type, fields["version"].required) == ("integer or null", False)
