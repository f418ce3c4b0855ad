import os
from pathlib import Path

import msgspec
import pytest

from worker.link.enrolment import (
    ConfigError,
    Enrolment,
    Paths,
    check_server_url,
    find_paths,
    load_enrolment,
    prepare_state,
    save_enrolment,
    sole_use,
)


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(state=tmp_path / "state", policy=tmp_path / "policy.toml")


ENROLMENT = Enrolment(
    host="h1",
    host_name="store-1",
    server="https://sweetspot.example.org",
    host_token="very-secret-token-of-the-host",
    broker_url="rediss://host.h1:broker-password@redis.example.org:6380/0",
    public_keys={},
    contract=1,
)


def test_it_keeps_an_enrolment_for_itself(paths: Paths) -> None:
    save_enrolment(paths, ENROLMENT)
    assert load_enrolment(paths) == ENROLMENT
    assert paths.enrolment.stat().st_mode & 0o777 == 0o600
    assert paths.state.stat().st_mode & 0o777 == 0o700


def test_it_shows_no_secret(paths: Paths) -> None:
    shown = f"{ENROLMENT} {ENROLMENT!r} {ENROLMENT.broker_address}"
    assert "very-secret" not in shown
    assert "broker-password" not in shown
    assert ENROLMENT.broker_address == "rediss://redis.example.org:6380/0"


def test_it_refuses_a_state_directory_open_to_others(paths: Paths) -> None:
    paths.state.mkdir(mode=0o755)
    with pytest.raises(ConfigError, match="chmod 700") as caught:
        prepare_state(paths.state)
    assert caught.value.code == "state_open_to_others"


def test_it_refuses_an_enrolment_open_to_others(paths: Paths) -> None:
    save_enrolment(paths, ENROLMENT)
    paths.enrolment.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        load_enrolment(paths)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a directory away")
def test_it_refuses_a_state_directory_of_somebody_else(paths: Paths) -> None:
    paths.state.mkdir(mode=0o700)
    os.chown(paths.state, 65534, -1)
    with pytest.raises(ConfigError, match="belongs to user 65534"):
        prepare_state(paths.state)


def test_it_says_how_to_enrol(paths: Paths) -> None:
    with pytest.raises(ConfigError, match="sweetspot-worker enrol") as caught:
        load_enrolment(paths)
    assert caught.value.code == "not_enrolled"


def test_it_names_a_damaged_enrolment(paths: Paths) -> None:
    save_enrolment(paths, ENROLMENT)
    paths.enrolment.write_text('{"host": 3}')
    with pytest.raises(ConfigError, match=r"worker\.json"):
        load_enrolment(paths)


@pytest.mark.parametrize(
    "url",
    [
        "https://s.example.org",
        "https://s.example.org:8443/",
        "http://127.0.0.1:8000",
        "http://[::1]:1",
        "http://localhost",
    ],
)
def test_it_takes_a_server_over_tls_or_loopback(url: str) -> None:
    assert check_server_url(url) == url.rstrip("/")


@pytest.mark.parametrize(
    "url",
    [
        "http://s.example.org",
        "http://10.0.0.1",
        "http://127.0.0.1.example.org",
        "ftp://x",
        "s.example.org",
        "https://u:p@h",
        "https://",
    ],
)
def test_it_refuses_a_server_to_which_the_token_would_travel_in_the_clear(url: str) -> None:
    with pytest.raises(ConfigError):
        check_server_url(url)


def test_it_lets_one_process_use_a_state_directory(paths: Paths) -> None:
    prepare_state(paths.state)
    with sole_use(paths.state), pytest.raises(ConfigError, match="Another worker process"), sole_use(paths.state):
        pass
    with sole_use(paths.state):
        pass


def test_it_finds_its_paths_by_option_then_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SWEETSPOT_WORKER_STATE", str(tmp_path / "a"))
    monkeypatch.setenv("SWEETSPOT_WORKER_POLICY", str(tmp_path / "p.toml"))
    assert find_paths() == Paths(state=tmp_path / "a", policy=tmp_path / "p.toml")
    assert find_paths(state=str(tmp_path / "b")).state == tmp_path / "b"
    monkeypatch.delenv("SWEETSPOT_WORKER_POLICY")
    (tmp_path / "a").mkdir()
    (tmp_path / "a/policy.toml").touch()
    assert find_paths().policy == tmp_path / "a/policy.toml"


def test_a_copy_of_the_state_directory_is_refused_on_the_same_host(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.link.enrolment.RUN", tmp_path / "run")
    copy = Paths(state=tmp_path / "copy", policy=paths.policy)
    for each in (paths, copy):
        save_enrolment(each, ENROLMENT)
    with sole_use(paths.state):
        with pytest.raises(ConfigError) as caught, sole_use(copy.state):
            pass
        assert caught.value.code == "identity_in_use"
    with sole_use(copy.state):
        pass
    assert list((tmp_path / "run").iterdir()) == []


def test_hosts_with_other_identities_do_not_exclude_each_other(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.link.enrolment.RUN", tmp_path / "run")
    other = Paths(state=tmp_path / "other", policy=paths.policy)
    save_enrolment(paths, ENROLMENT)
    save_enrolment(other, msgspec.structs.replace(ENROLMENT, host="h2"))
    with sole_use(paths.state), sole_use(other.state):
        pass


def test_a_worker_without_a_place_for_the_second_lock_starts(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("worker.link.enrolment.RUN", tmp_path / "file/run")
    save_enrolment(paths, ENROLMENT)
    with sole_use(paths.state):
        pass
