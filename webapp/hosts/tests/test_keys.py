"""The signing key: made once, unreadable without the secret key, replaceable."""

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings
from django.utils import timezone
from msgspec.structs import replace

from webapp.hosts.keys import create_key, endorsements, public_keys, signing_key
from webapp.hosts.models import ServerKey
from webapp.tests.threads import at_once
from worker.contract.orders import InventoryOrder
from worker.contract.signing import BadSignature, endorse, key_id, seal, unseal
from worker.link.enrolment import accepted_keys

ORDER = InventoryOrder(host="h", attempt="a", issued_at=1.0, expires_at=2.0)


def trusted() -> dict[str, bytes]:
    return {name: base64.b64decode(key) for name, key in public_keys().items()}


@pytest.mark.django_db
def test_workers_that_trust_the_key_accept_its_signature() -> None:
    name, private = signing_key()
    assert set(trusted()) == {name}
    assert unseal(seal(ORDER, private), host="h", public_keys=trusted()) == ORDER


@pytest.mark.django_db
def test_it_keeps_no_private_key_in_plain() -> None:
    _, private = signing_key()
    stored = bytes(ServerKey.objects.get().private_key)
    assert private not in stored
    assert base64.b64encode(private) not in stored


@pytest.mark.django_db
def test_it_says_when_the_secret_key_is_another() -> None:
    signing_key()
    with override_settings(SECRET_KEY=settings.SECRET_KEY + "x"), pytest.raises(ImproperlyConfigured, match="SECRET"):
        signing_key()


@pytest.mark.django_db
def test_it_signs_with_the_newest_and_trusts_all_that_are_not_retired() -> None:
    first, _ = signing_key()
    second = create_key()
    assert signing_key()[0] == second.key_id
    assert set(public_keys()) == {first, second.key_id}
    old = seal(ORDER, signing_key()[1])
    ServerKey.objects.filter(pk=second.pk).update(retired_at=timezone.now())
    assert signing_key()[0] == first
    with pytest.raises(BadSignature):
        unseal(old, host="h", public_keys=trusted())


@pytest.mark.django_db(transaction=True)
def test_several_processes_create_only_one_first_key() -> None:
    found = at_once(*[signing_key] * 4)
    assert len(set(map(str, found))) == 1
    assert ServerKey.objects.count() == 1


@pytest.mark.django_db
def test_a_host_that_was_away_follows_the_keys_one_after_the_other() -> None:
    first, _ = signing_key()
    known = trusted()
    second, third = create_key(), create_key()
    ServerKey.objects.exclude(pk=third.pk).update(retired_at=timezone.now())
    assert accepted_keys(known, public_keys(), endorsements()) == public_keys()
    assert {each.by for each in endorsements()} == {first, second.key_id}
    assert third.key_id in public_keys()


@pytest.mark.django_db
def test_a_server_in_the_middle_cannot_add_its_own_key() -> None:
    signing_key()
    known, own = trusted(), Ed25519PrivateKey.generate()
    raw = own.public_key().public_bytes_raw()
    offered = {key_id(raw): base64.b64encode(raw).decode()}
    forged = endorse(raw, own.private_bytes_raw())
    (name,) = known
    for endorsements_ in ((), (forged,), (replace(forged, by=name),)):
        assert accepted_keys(known, {**public_keys(), **offered}, endorsements_) == public_keys()
        assert accepted_keys(known, offered, endorsements_) == public_keys()
