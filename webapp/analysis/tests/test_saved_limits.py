"""Rows that a person makes have a limit."""

import pytest

from webapp.analysis import services
from webapp.analysis.services import copy_comparison, create_link, delete_comparison, save_comparison
from webapp.core.errors import Refusal
from webapp.core.models import Role
from webapp.tests.factories.people import a_user

pytestmark = pytest.mark.django_db


def test_a_person_saves_a_limited_number_of_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleted ones count: they can be brought back."""
    monkeypatch.setattr(services, "MAX_SAVED", 2)
    olga, other = a_user("olga", role=Role.OPERATOR), a_user("otto", role=Role.OPERATOR)
    saved = save_comparison(title="a", note="", query="x=iodepth", by=olga)
    delete_comparison(saved=copy_comparison(saved=saved, by=olga), by=olga)
    with pytest.raises(Refusal) as refusal:
        save_comparison(title="b", note="", query="x=iodepth", by=olga)
    assert refusal.value.code == "too_many_comparisons"
    with pytest.raises(Refusal) as refusal:
        copy_comparison(saved=saved, by=olga)
    assert refusal.value.code == "too_many_comparisons"
    assert copy_comparison(saved=saved, by=other).owner == other


def test_a_comparison_has_a_limited_number_of_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "MAX_LINKS", 2)
    olga = a_user("olga", role=Role.OPERATOR)
    saved = save_comparison(title="a", note="", query="x=iodepth", by=olga)
    for number in range(2):
        create_link(saved=saved, name=f"{number}", by=olga)
    with pytest.raises(Refusal) as refusal:
        create_link(saved=saved, name="3", by=olga)
    assert refusal.value.code == "too_many_links"
