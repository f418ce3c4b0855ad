"""Comparisons and saved comparisons over HTTP, against the real database."""

import pytest
from django.test import Client

from webapp.analysis.answer import Comparison
from webapp.api.common.schemas import schema_of
from webapp.api.tests.clients import Caller
from webapp.core.models import Role, User
from webapp.core.services import create_api_token
from webapp.tests.factories.results import Lab

pytestmark = pytest.mark.django_db


def test_a_comparison_is_as_described(viewer: Caller, lab: Lab) -> None:
    status, made = viewer("get", "compare?x=iodepth&series=ioengine&factor.block_size=4k")
    assert status == 200
    assert made["panels"][0]["series"][1]["sentence"].startswith("psync is 38 % slower than io_uring (95 % CI −")
    schema_of(Comparison).model_validate(made)
    assert viewer("get", "compare")[1]["code"] == "compare_x_missing"
    assert viewer("get", "compare?x=colour")[0] == 422
    assert viewer("get", "compare?x=iodepth&limit=3")[1]["code"] == "filter_refused"
    assert viewer("get", "compare?x=iodepth&margin=2.5")[1]["margin"] == 0.025
    assert viewer("get", "compare?x=iodepth&margin=much")[1]["code"] == "compare_margin_unknown"


def test_a_comparison_is_saved_changed_copied_deleted_and_brought_back(operator: Caller, viewer: Caller) -> None:
    status, made = operator("post", "comparisons", {"title": "Engines", "query": "x=iodepth&series=ioengine&saved=3"})
    assert (status, made["query"], made["owner"]) == (201, "x=iodepth&series=ioengine", "operator-person")
    path = f"comparisons/{made['id']}"
    changed = operator("post", path, {"title": "Both engines"})[1]
    assert (changed["title"], changed["query"]) == ("Both engines", made["query"])
    assert viewer("get", path)[1] == changed
    assert [one["id"] for one in viewer("get", "comparisons")[1]["items"]] == [made["id"]]
    assert viewer("get", "comparisons?show=own")[1]["count"] == 0
    assert operator("post", f"{path}/copy")[1]["title"] == "Both engines (copy)"
    assert [operator("delete", path)[0] for _ in range(2)] == [204, 204]
    assert operator("post", path, {"title": "x"})[1]["code"] == "comparison_deleted"
    assert operator("post", f"{path}/undelete")[1]["deleted_at"] is None
    assert operator("post", "comparisons", {"title": "x", "query": "x=nonsense"})[0] == 422
    assert operator("get", "comparisons/999")[0] == 404
    other = Client(headers={"Authorization": f"Bearer {_token_of('oskar')}"})
    assert other.delete(f"/api/v1/{path}").status_code == 403


def _token_of(name: str) -> str:
    return create_api_token(user=User.objects.create(username=name, role=Role.OPERATOR), name="test")
