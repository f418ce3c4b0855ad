"""The address of a form, opened by hand."""

from django.test import Client

from webapp.core.middleware import FORM_ONLY


def test_it_has_words_instead_of_an_empty_page(operator: Client) -> None:
    response = operator.get("/plans/first-look/start/")
    assert (response.status_code, response.headers["Allow"]) == (405, "POST")
    assert response.content.decode() == FORM_ONLY


def test_other_refused_methods_stay_as_they_are(operator: Client) -> None:
    response = operator.post("/healthz")
    assert (response.status_code, response.content) == (405, b"")
