"""The private authority: what it writes where, and when it renews."""

import ssl
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from webapp.deploy import certificates
from webapp.tests.system import ROOT


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    authority, folder = tmp_path / "authority", tmp_path / "tls"
    authority.mkdir()
    folder.mkdir()
    return authority, folder


def names_of(folder: Path) -> set[str]:
    found = x509.load_pem_x509_certificate((folder / "server.crt").read_bytes())
    return {str(name.value) for name in found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value}


def test_it_leaves_a_good_certificate_and_renews_for_other_names(folders: tuple[Path, Path]) -> None:
    assert certificates.ensure(*folders, ["a.example", "10.0.0.1"])
    authority = (folders[0] / "ca.crt").read_bytes()
    assert not certificates.ensure(*folders, ["a.example", "10.0.0.1"])
    assert certificates.ensure(*folders, ["b.example"])
    assert names_of(folders[1]) == {"b.example"}
    assert (folders[0] / "ca.crt").read_bytes() == (folders[1] / "ca.crt").read_bytes() == authority
    assert (folders[0] / "ca.key").stat().st_mode & 0o777 == 0o600


def test_it_keeps_the_authoritys_key_away_from_the_server(folders: tuple[Path, Path]) -> None:
    certificates.ensure(*folders, ["a.example"])
    assert sorted(each.name for each in folders[1].iterdir()) == ["ca.crt", "server.crt", "server.key"]
    assert (folders[0] / "ca.key").read_text() not in [each.read_text() for each in folders[1].iterdir()]


def test_it_renews_a_month_before_the_end(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "SERVER_DAYS", certificates.RENEW_DAYS - 1)
    certificates.ensure(*folders, ["a.example"])
    monkeypatch.undo()
    assert certificates.ensure(*folders, ["a.example"])
    found = x509.load_pem_x509_certificate((folders[1] / "server.crt").read_bytes())
    assert found.not_valid_after_utc > datetime.now(UTC) + timedelta(days=300)
    assert not certificates.ensure(*folders, ["a.example"])
    ssl.create_default_context(cafile=str(folders[1] / "ca.crt")).load_verify_locations(str(folders[1] / "ca.crt"))


def test_it_goes_on_checking_every_day(folders: tuple[Path, Path]) -> None:
    command = [sys.executable, "-m", "webapp.deploy.certificates", "--daily", *map(str, folders), "a.example"]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout
        assert child.stdout.readline() == "new server certificate\n"
        time.sleep(0.3)  # the subject is that it does not end
        assert child.poll() is None
    finally:
        child.kill()
        child.communicate()
