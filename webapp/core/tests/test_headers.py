"""What every answer tells the browser, and what Django says about a production installation."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.test import Client

import webapp
from webapp.core.services import create_api_token
from webapp.tests.factories.people import a_user

PRODUCTION = {
    "SWEETSPOT_PUBLIC_URL": "https://sweetspot.example",
    "SWEETSPOT_ALLOWED_HOSTS": "sweetspot.example",
    "SWEETSPOT_BEHIND_PROXY": "1",
    "SWEETSPOT_HTTPS": "1",
    "SWEETSPOT_DEBUG": "0",
}
CHECK = (sys.executable, "-W", "ignore", "manage.py", "check", "--deploy", "--fail-level", "WARNING")


def deployed(**changes: str) -> subprocess.CompletedProcess[str]:
    # The browser tests of the same process set what no production has.
    own = {name: value for name, value in os.environ.items() if name != "DJANGO_ALLOW_ASYNC_UNSAFE"}
    return subprocess.run(
        CHECK, cwd=Path(webapp.__file__).parents[1], env={**own, **PRODUCTION, **changes},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_it_passes_every_check_of_a_production_installation() -> None:
    done = deployed()
    assert done.returncode == 0, done.stderr


def test_it_fails_the_check_where_cookies_would_go_over_plain_http() -> None:
    done = deployed(SWEETSPOT_HTTPS="0")
    assert done.returncode != 0
    assert "SESSION_COOKIE_SECURE" in done.stderr


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["/login/", "/api/v1/openapi.json", "/api/v1/runs", "/nowhere/", "/runs/"])
def test_it_limits_what_a_page_may_do(client: Client, address: str) -> None:
    headers = client.get(address).headers
    policy = headers["Content-Security-Policy"]
    assert "script-src 'self';" in policy
    assert "style-src 'self';" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert "camera=()" in headers["Permissions-Policy"]


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["/", "/runs/", "/account/", "/api/v1/runs", "/nowhere/"])
def test_nothing_keeps_what_a_logged_in_person_sees(address: str) -> None:
    browser = Client()
    browser.force_login(a_user())
    assert "no-store" in browser.get(address)["Cache-Control"]
    script = Client(headers={"Authorization": f"Bearer {create_api_token(user=a_user(), name='nightly')}"})
    assert "no-store" in script.get(address)["Cache-Control"]
