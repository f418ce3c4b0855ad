"""Settings of e-mail and webhooks from the environment."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from webapp.settings import environment as env

NAME = "SWEETSPOT_SMTP_URL"


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("", env.MailServer()),
        ("smtp://mail.example", env.MailServer(host="mail.example", port=25)),
        ("smtp://127.0.0.1:1025", env.MailServer(host="127.0.0.1", port=1025)),
        (
            "smtp://user:p%40ss@mail.example?tls=starttls",
            env.MailServer(host="mail.example", port=587, user="user", password="p@ss", starttls=True),
        ),
        (
            "smtps://user:pass@mail.example",
            env.MailServer(host="mail.example", port=465, user="user", password="pass", tls=True),
        ),
    ],
)
def test_it_reads_the_mail_server(monkeypatch: pytest.MonkeyPatch, url: str, server: env.MailServer) -> None:
    monkeypatch.setenv(NAME, url)
    assert env.mail_server(NAME) == server


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://mail.example", "must look like smtp://"),
        ("smtp://", "must look like smtp://"),
        ("smtps://mail.example?tls=starttls", "must look like smtp://"),
        ("smtp://mail.example:abc", "cannot be read"),
        ("smtp://mail.example?tls=maybe", "takes starttls or none"),
        ("smtp://user:pass@mail.example", "would send its password to mail.example unencrypted"),
    ],
)
def test_it_refuses_a_bad_mail_server_in_words(monkeypatch: pytest.MonkeyPatch, url: str, words: str) -> None:
    monkeypatch.setenv(NAME, url)
    with pytest.raises(ImproperlyConfigured, match=f"{NAME}.*{words}") as refused:
        env.mail_server(NAME)
    assert "pass@" not in str(refused.value).replace("user:password@", "")


@pytest.mark.parametrize("sender", ["", "Sweetspot", "lab@example.com\nBcc: x@example.com"])
def test_it_wants_a_sender_where_there_is_a_mail_server(monkeypatch: pytest.MonkeyPatch, sender: str) -> None:
    monkeypatch.setenv("SWEETSPOT_MAIL_FROM", sender)
    with pytest.raises(ImproperlyConfigured, match="SWEETSPOT_MAIL_FROM is"):
        env.mail_from("SWEETSPOT_MAIL_FROM", needed=True)


def test_it_reads_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEETSPOT_WEBHOOK_NETWORKS", "10.1.0.0/16, fd00:1::/64,")
    assert [str(one) for one in env.networks("SWEETSPOT_WEBHOOK_NETWORKS")] == ["10.1.0.0/16", "fd00:1::/64"]
    monkeypatch.setenv("SWEETSPOT_WEBHOOK_NETWORKS", "10.1.0.5/16")
    with pytest.raises(ImproperlyConfigured, match=r"SWEETSPOT_WEBHOOK_NETWORKS: 10\.1\.0\.5/16 has host bits set"):
        env.networks("SWEETSPOT_WEBHOOK_NETWORKS")
