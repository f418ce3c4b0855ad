"""Where webhooks may go."""

import socket
import threading
from typing import Any

import pytest
from pytest_django import Settings

from webapp.core.errors import Refusal
from webapp.notices import webhook
from webapp.notices.webhook import MAX_LOOKUPS_OF_OWNER, read_url, resolve
from webapp.settings.environment import networks
from webapp.tests.refusals import refuses

INSIDE = [
    "http://127.0.0.1/",
    "http://localhost/",
    "http://LOCALHOST/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://017700000001/",
    "http://0177.0.0.1/",
    "http://0.0.0.0/",
    "http://0/",
    "http://10.0.0.1:8080/",
    "http://172.16.5.5/",
    "http://192.168.1.1/",
    "http://100.64.0.1/",
    "http://100.100.100.200/",
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/",
    "http://168.63.129.16/",
    "http://192.0.0.192/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://239.255.255.250/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::ffff:169.254.169.254]/",
    "http://[0:0:0:0:0:ffff:0a00:0001]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b:1::a00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[2002:a00:1::1]/",
    "http://[2001:0:7f00:1::1]/",
    "http://[fe80::1]/",
    "http://[fec0::1]/",
    "http://[fc00::1]/",
    "http://[fd00:ec2::254]/",
    "http://[ff02::1]/",
    "http://[2001:db8::1]/",
    "http://[100::1]/",
    "http://[5f00::1]/",
]
OUTSIDE = [
    "http://93.184.216.34/",
    "https://1.1.1.1:8443/x",
    "https://[2606:4700:4700::1111]/",
    "http://[64:ff9b::101:101]/",
]
UNREADABLE = [
    "",
    "hooks.example.com",
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_FLUSHALL",
    "//example.com/",
    "http:///path",
    "http://",
    "http://user@example.com/",
    "http://user:password@example.com/",
    "http://example.com\\@127.0.0.1/",
    "http://example.com:99999/",
    "http://example.com:0/",
    "http://example.com:x/",
    "http://exa mple.com/",
    "http://example.com/\r\nHost: other",
    "http://example.com/\x00",
    "http://[::1/",
    "http://①②⑦.0.0.1/",
    "http://example.com/" + "x" * 1000,
]


@pytest.mark.parametrize("url", INSIDE)
def test_it_refuses_what_is_inside_the_servers_network_however_it_is_written(url: str) -> None:
    with pytest.raises(Refusal) as refused:
        resolve(read_url(url), owner="a")
    assert refused.value.code == "webhook_inside"
    assert refused.value.message.endswith(
        "is inside the server's own network. The administrator can allow it with SWEETSPOT_WEBHOOK_NETWORKS."
    )


@pytest.mark.parametrize("url", OUTSIDE)
def test_it_takes_public_addresses(url: str) -> None:
    place = read_url(url)
    assert resolve(place, owner="a") == [place.host]


@pytest.mark.parametrize("url", UNREADABLE)
def test_it_refuses_what_is_no_plain_web_address(url: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_url(url)
    assert refused.value.code == "webhook_url_refused"


def test_it_keeps_host_port_path_and_query_and_drops_the_fragment() -> None:
    place = read_url("https://Hooks.Example.com/a/b?c=d#e")
    assert (place.scheme, place.host, place.port, place.target) == ("https", "hooks.example.com", 443, "/a/b?c=d")
    assert read_url("http://hooks.example.com:81").target == "/"


def test_it_allows_the_networks_of_the_administrator_and_nothing_beside(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWEETSPOT_WEBHOOK_NETWORKS", "10.1.0.0/16, fd00:1::/64")
    settings.WEBHOOK_NETWORKS = networks("SWEETSPOT_WEBHOOK_NETWORKS")
    for allowed in ("http://10.1.2.3/", "http://[::ffff:10.1.2.3]/", "http://[fd00:1::5]/"):
        assert resolve(read_url(allowed), owner="a")
    for refused in ("http://10.2.0.1/", "http://127.0.0.1/", "http://[fd00:2::1]/"):
        with pytest.raises(Refusal, match="inside the server's own network"):
            resolve(read_url(refused), owner="a")


def answers(*found: str) -> Any:
    return lambda *_, **__: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80)) for address in found]


def test_it_refuses_a_name_with_one_address_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", answers("93.184.216.34", "127.0.0.1"))
    with pytest.raises(Refusal, match=r"hooks\.example is inside"):
        resolve(read_url("http://hooks.example/"), owner="a")


@pytest.mark.parametrize("host", ["no-such-name.invalid", "a..b", "x" * 70])
def test_it_says_when_a_name_cannot_be_resolved(host: str) -> None:
    with pytest.raises(Refusal) as refused:
        resolve(read_url(f"http://{host}/"), owner="a")
    assert refused.value.code == "webhook_unresolved"


def test_it_does_not_wait_for_a_name_server_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    done = threading.Event()
    monkeypatch.setattr(webhook, "RESOLVE_LIMIT_S", 0.1)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: done.wait(30))
    with refuses("webhook_unresolved"):
        resolve(read_url("http://slow.example/"), owner="a")
    done.set()


def test_slow_names_of_one_person_do_not_hold_up_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slow look-up keeps its thread until the name server answers, long after its limit."""
    done = threading.Event()

    def looked_up(host: str, *_: object, **__: object) -> Any:
        return done.wait(30) if host == "slow.example" else answers("93.184.216.34")()

    monkeypatch.setattr(webhook, "RESOLVE_LIMIT_S", 0.1)
    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    for _ in range(20):
        with pytest.raises(Refusal) as refused:
            resolve(read_url("http://slow.example/"), owner="slow")
        assert refused.value.code == "webhook_unresolved"
    assert sum(thread.name == "resolve slow.example" for thread in threading.enumerate()) <= MAX_LOOKUPS_OF_OWNER
    monkeypatch.setattr(webhook, "RESOLVE_LIMIT_S", 5.0)
    assert resolve(read_url("http://quick.example/"), owner="other") == ["93.184.216.34"]
    done.set()
