"""Hosts' users in a real Redis: what each may do there, and that they come and go with the host."""

import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
import redis
from django.conf import settings
from django.core.management import call_command

from webapp.celery import redis_client
from webapp.core.tokens import hash_token
from webapp.hosts import credentials
from webapp.hosts.credentials import authenticate_host, next_token, request_rotation
from webapp.hosts.models import Host
from webapp.hosts.services import revoke_host
from webapp.hosts.tasks import keep_broker
from webapp.tests.factories.hosts import a_host, a_host_with_token
from webapp.tests.factories.people import a_user
from worker.contract.orders import queue_name

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


@pytest.fixture(autouse=True)
def no_users_left() -> Iterator[None]:
    """The users of this process's installation go with its hosts."""
    yield
    Host.objects.all().delete()
    credentials.reconcile()


def client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, socket_timeout=3)


def users() -> set[str]:
    with redis_client() as server:
        return {name for name in map(str, server.acl_users()) if name.startswith("host.")}


def an_admitted_host() -> tuple[Host, redis.Redis]:
    host = a_host()
    return host, client(credentials.admit(host=host))


# ---- what a host may do


def test_a_host_reads_its_own_queue() -> None:
    host, own = an_admitted_host()
    queue = queue_name(str(host.pk))
    with redis_client() as server:
        server.lpush(queue, "order")
    assert own.llen(queue) == 1
    assert own.brpop([queue], timeout=1) == (queue.encode(), b"order")


@pytest.mark.parametrize(
    "command",
    [
        ("LRANGE", "{queue}", 0, -1),
        ("LLEN", "{queue}"),
        ("BRPOP", "{queue}", 1),
        ("LPUSH", "{queue}", "forged"),
        ("RPUSH", "{queue}", "forged"),
        ("DEL", "{queue}"),
        ("SET", "{queue}", "x"),
        ("GET", "{queue}:unacked_mutex"),
        ("HGET", "{queue}:unacked", "tag"),
        ("HSET", "{queue}:unacked", "tag", "x"),
        ("HDEL", "{queue}:unacked", "tag"),
        ("ZADD", "{queue}:unacked_index", 1, "tag"),
        ("SADD", "_kombu.binding.{queue}", "x"),
        ("EVAL", "return redis.call('LLEN', KEYS[1])", 1, "{queue}"),
        ("EVAL", "return redis.call('LLEN', '{queue}')", 0),
        ("LPUSH", "server", "forged"),
        ("DEL", "server"),
        ("HGET", "unacked", "tag"),
    ],
)  # fmt: skip
def test_it_is_kept_from_the_queue_and_keys_of_others(command: tuple[object, ...]) -> None:
    _, own = an_admitted_host()
    other = queue_name(str(a_host().pk))
    with redis_client() as server:
        server.lpush(other, "order")
    words = [part.replace("{queue}", other) if isinstance(part, str) else part for part in command]
    with pytest.raises(redis.ResponseError, match=r"(?i)permission|can't access"):
        own.execute_command(*words)  # type: ignore[no-untyped-call]
    with redis_client() as server:
        assert server.lrange(other, 0, -1) == [b"order"]


@pytest.mark.parametrize(
    "command",
    [
        "KEYS *", "SCAN 0", "FLUSHALL", "FLUSHDB", "CONFIG GET *", "CONFIG SET dir /tmp", "ACL LIST", "ACL WHOAMI",
        "CLIENT LIST", "CLIENT KILL TYPE normal", "INFO", "MONITOR", "SHUTDOWN NOSAVE", "SAVE",
        "REPLICAOF 127.0.0.1 1", "MODULE LIST", "SCRIPT FLUSH", "SUBSCRIBE x", "PUBLISH x y", "RANDOMKEY",
        "SWAPDB 0 1", "MIGRATE 127.0.0.1 1 k 0 1", "SLOWLOG GET",
    ],
)  # fmt: skip
def test_it_may_not_administer_or_look_around(command: str) -> None:
    _, own = an_admitted_host()
    with pytest.raises(redis.ResponseError, match=r"(?i)permission"):
        own.execute_command(*command.split())  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    "command",
    [
        ("EVAL", "while true do redis.call('SET', KEYS[1], 'x') end", 1, "{queue}"),
        ("EVALSHA", "0" * 40, 1, "{queue}"),
        ("SCRIPT", "LOAD", "return 1"),
        ("FUNCTION", "LIST"),
        ("FCALL", "f", 1, "{queue}"),
        ("LPUSH", "{queue}", "rubbish"),
        ("SET", "{queue}:x", "rubbish"),
        ("HSET", "{queue}:unacked", "tag", "rubbish"),
        ("SADD", "{queue}:x", "rubbish"),
        ("APPEND", "{queue}:x", "rubbish"),
    ],
)  # fmt: skip
def test_it_may_neither_hold_redis_with_a_script_nor_fill_it(command: tuple[object, ...]) -> None:
    host, own = an_admitted_host()
    queue = queue_name(str(host.pk))
    words = [part.replace("{queue}", queue) if isinstance(part, str) else part for part in command]
    with pytest.raises(redis.ResponseError, match=r"(?i)permission|unknown command"):
        own.execute_command(*words)  # type: ignore[no-untyped-call]


def test_it_frees_the_broker_of_a_revoked_host_that_waits_for_orders() -> None:
    host, own = an_admitted_host()
    queue = queue_name(str(host.pk))
    ended: list[type[BaseException]] = []

    def wait() -> None:
        try:
            own.brpop([queue], timeout=30)
        except redis.RedisError as error:
            ended.append(type(error))

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.5)  # until Redis has the command; its user of the server may not list clients
    revoke_host(host=host, by=None)
    waiting.join(10)
    assert ended
    with pytest.raises((redis.AuthenticationError, redis.ConnectionError)):
        own.ping()


def test_it_empties_the_queue_of_a_revoked_host() -> None:
    host, _ = an_admitted_host()
    with redis_client() as server:
        server.lpush(queue_name(str(host.pk)), "order")
        revoke_host(host=host, by=None)
        assert not server.exists(queue_name(str(host.pk)))


def test_it_lets_nobody_in_as_the_default_user() -> None:
    address = urlsplit(settings.REDIS_URL)
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(host=str(address.hostname), port=address.port or 6379).ping()


def test_it_lets_the_server_make_users_but_not_administer_redis() -> None:
    with redis_client() as server, pytest.raises(redis.ResponseError, match="permission"):
        server.config_set("dir", "/tmp")


# ---- with the host


def test_it_keeps_the_hash_of_the_password_only() -> None:
    host = a_host()
    url = credentials.admit(host=host)
    password = urlsplit(url).password or ""
    host.refresh_from_db()
    assert host.broker_hash == hash_token(password)
    assert urlsplit(url).username == credentials.user_name(host.pk)
    assert password not in str(Host.objects.filter(pk=host.pk).values().get())


def test_it_lets_an_earlier_password_open_nothing() -> None:
    host = a_host()
    first, second = client(credentials.admit(host=host)), client(credentials.admit(host=host))
    assert second.ping()
    with pytest.raises(redis.AuthenticationError):
        first.ping()


def test_it_changes_the_password_with_the_token_and_never_leaves_the_host_outside() -> None:
    host, _ = a_host_with_token()
    old = client(credentials.admit(host=host))
    assert old.ping()
    request_rotation(host=host, by=None)
    lost = client(next_token(host=host).broker_url)  # the answer with it did not come
    reply = next_token(host=host)
    new = client(reply.broker_url)
    assert (old.ping(), new.ping()) == (True, True)
    with pytest.raises(redis.AuthenticationError):
        lost.ping()
    assert credentials.reconcile() == credentials.Changes((), ())
    with redis_client() as server:
        server.acl_deluser(credentials.user_name(host.pk))
    assert credentials.reconcile().made == (credentials.user_name(host.pk),)
    assert old.ping()

    assert authenticate_host(reply.host_token) == host  # its first use
    with pytest.raises((redis.AuthenticationError, redis.ConnectionError)):
        old.ping()  # it was connected
    with pytest.raises(redis.AuthenticationError):
        old.ping()
    assert new.ping()
    assert credentials.reconcile() == credentials.Changes((), ())


def test_it_forgets_a_password_that_was_offered_when_the_host_is_revoked() -> None:
    host, _ = a_host_with_token()
    credentials.admit(host=host)
    request_rotation(host=host, by=None)
    offered = client(next_token(host=host).broker_url)
    assert offered.ping()
    revoke_host(host=host, by=None)
    keep_broker()
    with pytest.raises((redis.AuthenticationError, redis.ConnectionError)):
        offered.ping()


def test_it_cuts_off_a_revoked_host_at_once() -> None:
    host, own = an_admitted_host()
    assert own.ping()
    revoke_host(host=host, by=a_user())
    with pytest.raises((redis.AuthenticationError, redis.ConnectionError)):
        own.ping()
    assert credentials.user_name(host.pk) not in users()
    keep_broker()
    assert credentials.user_name(host.pk) not in users()


def test_it_removes_the_user_of_a_host_that_is_no_more() -> None:
    host, _ = an_admitted_host()
    name = credentials.user_name(host.pk)
    assert name in users()
    host.delete()
    assert credentials.reconcile().removed == (name,)
    assert name not in users()


# ---- put back


def test_it_puts_users_back_that_redis_lost() -> None:
    host, own = an_admitted_host()
    with redis_client() as server:
        server.acl_deluser(credentials.user_name(host.pk))
    with pytest.raises((redis.AuthenticationError, redis.ConnectionError)):
        own.ping()
    keep_broker()
    assert own.ping()
    assert credentials.reconcile() == credentials.Changes((), ())


def test_it_corrects_a_user_that_was_widened_when_set_up_runs() -> None:
    host, own = an_admitted_host()
    with redis_client() as server:
        server.acl_setuser(credentials.user_name(host.pk), enabled=True, commands=["+@all"], keys=["*"])
    assert own.keys("*") is not None
    call_command("setup")
    with pytest.raises(redis.ResponseError):
        own.keys("*")


def test_it_leaves_the_users_of_another_installation_alone() -> None:
    with redis_client() as server:
        server.acl_setuser("host.15.somebody", enabled=True, nopass=True)
        try:
            assert "host.15.somebody" not in credentials.reconcile().removed
            assert "host.15.somebody" in users()
        finally:
            server.acl_deluser("host.15.somebody")


def test_it_finds_nothing_open_in_the_private_stack() -> None:
    assert credentials.problems() == []


def test_it_reports_insecure_settings_of_redis(capsys: pytest.CaptureFixture[str]) -> None:
    with redis_client() as server:
        server.acl_setuser("default", enabled=True)
        try:
            a_host()
            call_command("setup")
        finally:
            server.acl_setuser("default", enabled=False)
    said = capsys.readouterr().err
    assert "default user is enabled" in said
    assert "enrol these hosts again" in said
