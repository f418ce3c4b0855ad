"""The contract is strict: what fits goes through unchanged, what does not is refused in words."""

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from worker.contract import base, orders, signing
from worker.contract.base import ContractError, Message, TooLarge, VersionMismatch
from worker.contract.items import Attachment
from worker.contract.reports import Report
from worker.contract.tests import examples as ex

VERSIONED = [
    ex.REPORT,
    ex.REPORT_REPLY,
    ex.HELLO,
    ex.HELLO_REPLY,
    ex.ENROL,
    ex.ENROL_REPLY,
    ex.PROBLEM,
]
ORDERS = [ex.TRIAL_ORDER, ex.CLOSE_RUN_ORDER, ex.INVENTORY_ORDER]
KEY = Ed25519PrivateKey.generate()
PUBLIC = KEY.public_key().public_bytes_raw()
KEYS = {signing.key_id(PUBLIC): PUBLIC}


def sealed(order: orders.AnyOrder) -> str:
    return signing.seal(order, KEY.private_bytes_raw())


@pytest.mark.parametrize("message", VERSIONED, ids=lambda m: type(m).__name__)
def test_it_reads_back_what_was_written(message: Message) -> None:
    assert base.decode(base.encode(message), type(message), limit=base.MAX_REPORT_BYTES) == message


@pytest.mark.parametrize("message", VERSIONED, ids=lambda m: type(m).__name__)
def test_it_refuses_a_field_it_does_not_know(message: Message) -> None:
    plain = msgspec.to_builtins(message) | {"surprise": 1}
    with pytest.raises(ContractError, match="surprise"):
        base.decode(msgspec.json.encode(plain), type(message), limit=base.MAX_REPORT_BYTES)


@pytest.mark.parametrize("message", VERSIONED, ids=lambda m: type(m).__name__)
def test_it_names_the_side_to_upgrade(message: Message) -> None:
    for version, who in ((base.CONTRACT_VERSION + 1, "this side"), (base.OLDEST_UNDERSTOOD - 1, "the sender")):
        plain = msgspec.to_builtins(message) | {"version": version, "of_the_future": True}
        with pytest.raises(VersionMismatch, match=f"Upgrade {who}"):
            base.decode(msgspec.json.encode(plain), type(message), limit=base.MAX_REPORT_BYTES)


def test_it_refuses_what_is_too_large_before_reading_it() -> None:
    with pytest.raises(TooLarge, match="over the limit of 10 bytes"):
        base.decode(b"x" * 11, Report, limit=10)


@given(st.binary(max_size=400))
def test_it_answers_garbage_with_a_contract_error(data: bytes) -> None:
    with pytest.raises(ContractError):
        base.decode(data, Report, limit=1000)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda c: st.lists(c) | st.dictionaries(st.text(), c),
        max_leaves=20,
    )
)
def test_it_answers_any_other_json_with_a_contract_error(value: object) -> None:
    with pytest.raises(ContractError):
        orders.decode_order(msgspec.json.encode({"version": 2, "purpose": "trial", "streams": value}))


def test_it_survives_deep_nesting() -> None:
    with pytest.raises(ContractError):
        base.decode(b'{"version":2,"batches":' + b"[" * 100_000 + b"]" * 100_000 + b"}", Report, limit=10**6)


@pytest.mark.parametrize("order", ORDERS, ids=lambda o: type(o).__name__)
def test_it_opens_an_order_that_the_server_sealed(order: orders.AnyOrder) -> None:
    assert signing.unseal(sealed(order), host=ex.HOST, public_keys=KEYS) == order


def test_it_refuses_an_order_for_another_host() -> None:
    with pytest.raises(signing.WrongOrder, match="this is host other"):
        signing.unseal(sealed(ex.TRIAL_ORDER), host="other", public_keys=KEYS)


def test_it_refuses_a_key_it_does_not_trust() -> None:
    with pytest.raises(signing.BadSignature, match="does not trust"):
        signing.unseal(sealed(ex.TRIAL_ORDER), host=ex.HOST, public_keys={})


@given(st.integers(min_value=0), st.characters(min_codepoint=33, max_codepoint=126))
def test_it_refuses_an_order_changed_in_one_character(place: int, letter: str) -> None:
    envelope = msgspec.json.decode(sealed(ex.TRIAL_ORDER), type=signing.Envelope)
    at = place % len(envelope.order)
    changed = envelope.order[:at] + letter + envelope.order[at + 1 :]
    if changed == envelope.order:
        return
    forged = base.encode(msgspec.structs.replace(envelope, order=changed))
    with pytest.raises(signing.BadSignature):
        signing.unseal(forged.decode(), host=ex.HOST, public_keys=KEYS)


@pytest.mark.parametrize(("oldest", "newest", "agreed"), [(2, 2, 2), (1, 9, base.CONTRACT_VERSION), (0, 2, 2)])
def test_it_agrees_on_the_newest_version_both_speak(oldest: int, newest: int, agreed: int) -> None:
    assert base.common_version(oldest=oldest, newest=newest) == agreed


@pytest.mark.parametrize(("oldest", "newest"), [(base.CONTRACT_VERSION + 1, 99), (0, 0)])
def test_it_says_so_where_no_version_is_common(oldest: int, newest: int) -> None:
    with pytest.raises(VersionMismatch, match="none in common"):
        base.common_version(oldest=oldest, newest=newest)


@pytest.mark.parametrize("name", ["a.txt\n", "../a.txt", "A.txt", "a"])
def test_an_attachment_has_the_plain_name_of_a_file(name: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"name": name, "media_type": "text/plain", "text": ""}, Attachment)


def test_it_refuses_an_order_with_two_streams_of_one_number() -> None:
    """The worker would open the target of the one and write to it with the workload of the other."""
    plain = msgspec.to_builtins(ex.TRIAL_ORDER)
    plain["streams"] *= 2
    with pytest.raises(ContractError, match="same number"):
        orders.decode_order(msgspec.json.encode(plain))
