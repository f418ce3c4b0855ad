"""A NUL in an address is refused in words, by pages and by the API."""

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("address", ["/hosts/%00/", "/results/?host=%00", "/login/?next=%00"])
def test_it_refuses_a_page_with_a_nul_in_its_address(address: str) -> None:
    answer = Client(raise_request_exception=False).get(address)
    assert answer.status_code == 400
    assert "NUL" in answer.content.decode()


@pytest.mark.parametrize("address", ["/api/v1/hosts/%00", "/api/v1/targets?host=%00"])
def test_it_refuses_an_operation_with_a_nul_in_its_address(address: str) -> None:
    answer = Client(raise_request_exception=False).get(address)
    assert (answer.status_code, answer.json()["code"]) == (400, "request_refused")
