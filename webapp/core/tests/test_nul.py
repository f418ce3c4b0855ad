"""A NUL in an address is refused in words, by pages and by the API."""

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("address", "status"), [("/hosts/%00/", 404), ("/results/?host=%00", 422), ("/login/?next=%00", 422)]
)
def test_it_refuses_a_page_with_a_nul_in_its_address(address: str, status: int) -> None:
    answer = Client(raise_request_exception=False).get(address)
    assert answer.status_code == status
    assert "NUL" in answer.content.decode()


@pytest.mark.parametrize(
    ("address", "problem"),
    [("/api/v1/hosts/%00", (404, "not_found")), ("/api/v1/targets?host=%00", (422, "request_refused"))],
)
def test_it_refuses_an_operation_with_a_nul_in_its_address(address: str, problem: tuple[int, str]) -> None:
    answer = Client(raise_request_exception=False).get(address)
    assert (answer.status_code, answer.json()["code"]) == problem
