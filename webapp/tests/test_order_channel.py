"""The order channel of the whole system: what a host that was taken over can do with its own broker user."""

from urllib.parse import urlsplit

import pytest
import redis
from django.core.management import call_command

from webapp.celery import redis_client
from webapp.hosts import credentials
from webapp.hosts.keys import keys_in_use, retire_superseded, signing_key
from webapp.hosts.models import ServerKey
from webapp.hosts.services import revoke_host
from webapp.runs.models import RunState
from webapp.tests.system import StorageHost, System
from webapp.tests.whole_runs import assert_whole, plan, scratch
from worker.contract.orders import queue_name

pytestmark = [pytest.mark.pipeline]


def own_broker(storage: StorageHost) -> redis.Redis:
    """As whoever has read the host's state directory."""
    return redis.Redis.from_url(storage.enrolment["broker_url"], socket_timeout=3)


def test_it_runs_under_a_broker_user_of_its_own(system: System, storage: StorageHost) -> None:
    run = system.until_ended(system.start_run(plan(), scratch(storage)), limit_s=60)
    assert run.state == RunState.DONE
    assert_whole(run)
    assert urlsplit(storage.enrolment["broker_url"]).username == credentials.user_name(storage.host.pk)
    assert "NOPERM" not in storage.log


def test_it_can_neither_read_nor_forge_the_orders_of_another_host(system: System, storage: StorageHost) -> None:
    policy = (system.folder / f"{storage.slug}.policy.toml").read_text()
    other = next((host for host in system.hosts if host.slug == "other"), None) or system.add_host("other", policy)
    other.stop()
    storage.stop()
    run = system.start_run(plan(), scratch(other))
    queue = queue_name(str(other.host.pk))
    with own_broker(storage) as attacker:
        for command in (["BRPOP", queue, "1"], ["LPUSH", queue, "forged"], ["DEL", queue], ["KEYS", "*"]):
            with pytest.raises(redis.ResponseError):
                attacker.execute_command(*command)
    other.start()
    system.until_ended(run, limit_s=60)
    assert run.state == RunState.DONE
    other.stop()


def test_it_takes_orders_again_after_its_user_was_lost(system: System, storage: StorageHost) -> None:
    """Redis restarted without its ACL file: the periodic task puts the user back, and the worker comes back."""
    with redis_client() as server:
        server.acl_deluser(credentials.user_name(storage.host.pk))
    run = system.start_run(plan(), scratch(storage))
    assert credentials.user_name(storage.host.pk) in credentials.reconcile().made
    system.until_ended(run, limit_s=90)
    assert run.state == RunState.DONE
    assert_whole(run)


def test_it_changes_the_server_key_in_the_middle_of_a_trial(system: System, storage: StorageHost) -> None:
    """No order is refused: the old key signs for the host until the host has said that it trusts the new one."""
    old = signing_key()[0]
    seen = len(storage.log)
    run = system.start_run(plan(repeats=3, runtime="3s"), scratch(storage))
    system.until(lambda: run.trials.filter(state="running").exists(), limit_s=60, what="a trial runs")
    call_command("rotate_server_key")
    new = keys_in_use()[0].key_id
    assert new != old
    assert retire_superseded() == []
    assert signing_key(trusted=storage.host.trusted_keys)[0] == old
    system.until_ended(run, limit_s=90)
    assert run.state == RunState.DONE
    assert_whole(run)
    storage.greet()
    system.until(lambda: new in storage.host.trusted_keys, limit_s=30, what="the host trusts the new key")
    _others_are_gone(system, storage)
    assert retire_superseded() == [old]
    assert ServerKey.objects.get(pk=old).retired_at
    system.until_ended(again := system.start_run(plan(), scratch(storage)), limit_s=60)
    assert again.state == RunState.DONE
    storage.greet()
    system.until(lambda: storage.host.trusted_keys == [new], limit_s=30, what="the host forgets the old key")
    assert "dropped" not in storage.log[seen:]
    assert sorted(storage.enrolment["public_keys"]) == [new]


def _others_are_gone(system: System, storage: StorageHost) -> None:
    """A host that is away would hold the old key for ever: that is what revoking and --retire are for."""
    for host in system.hosts:
        if host is not storage:
            revoke_host(host=host.host, by=None)
