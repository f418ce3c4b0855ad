"""Certificates that end soon are found in time."""

from pathlib import Path

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from webapp.deploy import certificates

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("broker")]
NAME = "sweetspot_certificate_expires_timestamp_seconds"


@pytest.fixture
def certificate(tmp_path: Path, settings: Settings) -> str:
    certificates.ensure(tmp_path, tmp_path, ["a.example"])
    settings.CERTIFICATES = [str(tmp_path / "server.crt")]
    return str(tmp_path / "server.crt")


def test_it_shows_when_a_certificate_expires(certificate: str) -> None:
    metrics = text_string_to_metric_families(Client().get("/metrics").content.decode())
    (found,) = (sample for family in metrics for sample in family.samples if sample.name == NAME)
    assert found.labels == {"file": certificate}
    assert found.value > 1.7e9


def test_healthz_warns_of_a_certificate_that_expires_soon(
    tmp_path: Path, certificate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Client().get("/healthz?without=tasks").json()["warnings"] == []
    monkeypatch.setattr(certificates, "SERVER_DAYS", 20)
    certificates.ensure(tmp_path, tmp_path, ["b.example"])
    answer = Client().get("/healthz?without=tasks")
    assert answer.status_code == 200
    (warning,) = answer.json()["warnings"]
    assert warning.startswith(f"The certificate {certificate} expires on ")


def test_healthz_warns_of_a_certificate_that_cannot_be_read(tmp_path: Path, settings: Settings) -> None:
    (tmp_path / "broken.crt").write_text("nothing")
    settings.CERTIFICATES = [str(tmp_path / "broken.crt"), str(tmp_path / "missing.crt")]
    assert len(Client().get("/healthz?without=tasks").json()["warnings"]) == 2
    assert NAME + "{" not in Client().get("/metrics").content.decode()
