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
