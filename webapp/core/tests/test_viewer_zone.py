"""The viewer's time zone: from the cookie while the request lasts."""

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from django.utils import timezone

from webapp.core.middleware import viewers_time_zone


def seen(cookie: str | None) -> str:
    request = RequestFactory().get("/")
    if cookie is not None:
        request.COOKIES["timezone"] = cookie
    answer = viewers_time_zone(lambda _: HttpResponse(timezone.get_current_timezone_name()))
    return answer(request).content.decode()


@pytest.mark.parametrize(
    ("cookie", "zone"),
    [
        ("Europe/Berlin", "Europe/Berlin"), ("", "UTC"), (None, "UTC"), ("Nowhere/City", "UTC"),
        ("../../etc/passwd", "UTC"), ("/etc/localtime", "UTC"),
    ],
)  # fmt: skip
def test_only_a_known_zone_counts(cookie: str | None, zone: str) -> None:
    assert seen(cookie) == zone


def test_it_ends_with_the_request_also_where_that_fails() -> None:
    def fails(_: HttpRequest) -> HttpResponse:
        raise LookupError

    request = RequestFactory().get("/")
    request.COOKIES["timezone"] = "Asia/Tokyo"
    with pytest.raises(LookupError):
        viewers_time_zone(fails)(request)
    assert timezone.get_current_timezone_name() == "UTC"
