"""Settings from environment variables."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from webapp.settings import environment

NAME = "SWEETSPOT_DATABASE_URL"


def test_an_external_database_can_require_a_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "postgres://u:p%40s@db:5433/lab?sslmode=verify-full&sslrootcert=/ca.crt")
    entry = environment.database(NAME)
    assert (entry["USER"], entry["PASSWORD"], entry["HOST"], entry["PORT"], entry["NAME"]) == (
        "u", "p@s", "db", "5433", "lab",
    )  # fmt: skip
    assert entry["OPTIONS"]["sslmode"] == "verify-full"
    assert entry["OPTIONS"]["sslrootcert"] == "/ca.crt"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("password=p", "before the @"),
        ("sslmod=require", "parameter sslmod"),
        ("sslmode:require", "parameter sslmode:require"),
        ("sslmode", "sslmode .* has no value"),
    ],
)
def test_a_parameter_of_the_database_that_would_be_ignored_is_refused(
    monkeypatch: pytest.MonkeyPatch, query: str, words: str
) -> None:
    monkeypatch.setenv(NAME, f"postgres://u@db/lab?{query}")
    with pytest.raises(ImproperlyConfigured, match=words):
        environment.database(NAME)


def test_days_by_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "nightly=90, acceptance=0")
    assert environment.days_by_name(NAME) == {"nightly": 90, "acceptance": 0}
    monkeypatch.setenv(NAME, "")
    assert environment.days_by_name(NAME) == {}


@pytest.mark.parametrize("text", ["nightly", "=90", "nightly=-1", "nightly=soon", "nightly=1=2"])
def test_days_that_cannot_be_read_are_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would delete other runs than the administrator meant."""
    monkeypatch.setenv(NAME, text)
    with pytest.raises(ImproperlyConfigured, match="nightly=90"):
        environment.days_by_name(NAME)


def test_negative_days_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "-1")
    with pytest.raises(ImproperlyConfigured):
        environment.days(NAME)
