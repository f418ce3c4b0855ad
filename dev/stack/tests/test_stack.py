"""A real private PostgreSQL and Redis: closed to others, started once, stopped and removed exactly."""

import os
import secrets
import socket
from collections.abc import Iterator

import psycopg
import pytest
import redis

from dev.console import ToolError
from dev.stack import lifecycle, postgres, processes, redis_server, services
from dev.stack.network import LOOPBACK, listen
from dev.stack.state import State, default_state


@pytest.fixture
def state() -> Iterator[State]:
    state = default_state(f"own-{secrets.token_hex(3)}")
    state.prepare()
    yield state
    lifecycle.remove(state)


def test_it_starts_stops_and_removes_the_stores(state: State) -> None:
    lifecycle.start_stores(state, durable=False)
    first = processes.known(state, postgres.NAME)
    lifecycle.start_stores(state, durable=False)
    assert processes.known(state, postgres.NAME) == first
    assert lifecycle.running(state) == [redis_server.NAME, postgres.NAME]
    with psycopg.connect(host=str(postgres.folder(state)), user=postgres.ROLE, dbname=postgres.DATABASE) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
    with (
        redis.Redis(host=LOOPBACK, port=redis_server.port(state)) as stranger,
        pytest.raises(redis.AuthenticationError),
    ):
        stranger.ping()
    assert lifecycle.stop(state, quietly=True)
    assert lifecycle.running(state) == []
    assert not lifecycle.stop(state, quietly=True)
    lifecycle.remove(state)
    assert not state.exists


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_it_lets_no_other_user_into_the_database(state: State) -> None:
    postgres.start(state, durable=False)
    psql = str(postgres.programs() / "psql")
    place = str(postgres.folder(state))
    with pytest.raises(ToolError, match=r"(?i)permission denied"):
        processes.run([psql, "-h", place, "-U", postgres.ROLE, "-c", "select 1"], user="nobody")


def test_it_takes_another_port_where_redis_finds_its_own_taken(state: State) -> None:
    redis_server.start(state)
    before = redis_server.port(state)
    processes.stop(state, redis_server.NAME)
    with listen(before) as squatter:
        assert squatter.getsockname()[1] == before
        redis_server.start(state)
        assert redis_server.port(state) != before


def test_it_keeps_hosts_users_when_redis_restarts_and_no_default_user(state: State) -> None:
    redis_server.start(state)
    with redis.Redis.from_url(redis_server.url(state)) as server:
        server.acl_setuser("host.0.a", enabled=True, nopass=True, keys=["host.a"], commands=["+llen", "+auth"])
        server.acl_save()
    processes.stop(state, redis_server.NAME)
    redis_server.start(state)
    with redis.Redis.from_url(redis_server.url(state)) as server:
        users = server.acl_list()
    assert [line.split()[1] for line in users] == ["default", "host.0.a", redis_server.SERVER_USER]
    assert users[0].split()[2] == "off"


def test_it_closes_the_default_user_that_an_earlier_version_left_open(state: State) -> None:
    (state.root / "redis").mkdir(mode=0o700)
    (state.root / "redis" / "users.acl").write_text("user default on nopass ~* &* +@all\n")
    redis_server.start(state)
    with (
        redis.Redis(host=LOOPBACK, port=redis_server.port(state)) as stranger,
        pytest.raises(redis.AuthenticationError),
    ):
        stranger.ping()


def test_it_holds_the_web_port_from_the_moment_it_is_promised(state: State) -> None:
    with listen() as other:
        taken = other.getsockname()[1]
        state.write_facts("ports.json", {services.WEB: taken})
        reserved = services.reserve_address(state)
        assert reserved is not None
        with reserved:
            port = reserved.getsockname()[1]
            assert port != taken
            assert services.public_url(state) == f"http://{LOOPBACK}:{port}"
            with socket.socket() as late, pytest.raises(OSError, match="in use"):
                late.bind((LOOPBACK, port))


def test_it_refuses_a_place_too_long_for_a_socket(state: State) -> None:
    long = State(state.root / ("x" * 100))
    long.prepare()
    with pytest.raises(ToolError, match="too long"):
        postgres.start(long)
