"""Ed25519 signatures over orders. The worker pins the server's public keys at enrolment."""

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from typing import Annotated

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec import Meta

from worker.contract.base import CONTRACT_VERSION, MAX_ORDER_BYTES, ContractError, Id, Message, as_bytes, decode, encode
from worker.contract.orders import AnyOrder, decode_order


class BadSignature(ContractError):
    code = "bad_signature"


class WrongOrder(ContractError):
    """Signed by the server, but for another host."""

    code = "wrong_order"


class Envelope(Message, frozen=True, kw_only=True):
    """An order in the broker: its exact text and the signature of the text."""

    key_id: Id
    order: str
    signature: str  # base64 of 64 bytes
    version: int = CONTRACT_VERSION


class Endorsement(Message, frozen=True, kw_only=True):
    """An older key of the server signs for a newer one, so that nobody between server and host can add a key."""

    public_key: Annotated[str, Meta(max_length=60)]  # base64 of the newer raw key
    by: Id  # id of the older key
    signature: Annotated[str, Meta(max_length=120)]  # base64 of 64 bytes


_ENDORSES = b"sweetspot: this key signs orders too: "  # no order begins like this


def endorse(public_key: bytes, private_key: bytes) -> Endorsement:
    """Sign for a new public key with the raw private key of an older one."""
    older = Ed25519PrivateKey.from_private_bytes(private_key)
    return Endorsement(
        public_key=base64.b64encode(public_key).decode(),
        by=key_id(older.public_key().public_bytes_raw()),
        signature=base64.b64encode(older.sign(_ENDORSES + public_key)).decode(),
    )


def endorsed(endorsements: Sequence[Endorsement], known: Mapping[str, bytes]) -> dict[str, bytes]:
    """The known keys, and all that they endorse, also through others. Endorsements that do not hold are left out."""
    trusted = dict(known)
    for _ in endorsements:
        for each in endorsements:
            if key := _endorsed_key(each, trusted):
                trusted[key_id(key)] = key
    return trusted


def _endorsed_key(endorsement: Endorsement, trusted: Mapping[str, bytes]) -> bytes | None:
    older = trusted.get(endorsement.by)
    try:
        key = base64.b64decode(endorsement.public_key, validate=True)
        signature = base64.b64decode(endorsement.signature, validate=True)
        if older is None or len(key) != 32:
            return None
        Ed25519PublicKey.from_public_bytes(older).verify(signature, _ENDORSES + key)
    except (InvalidSignature, binascii.Error, ValueError):
        return None
    return key


def key_id(public_key: bytes) -> str:
    """Short name of a key: the first 16 hex digits of its SHA-256. Also the fingerprint shown to people."""
    return hashlib.sha256(public_key).hexdigest()[:16]


def seal(order: AnyOrder, private_key: bytes) -> str:
    """The envelope's JSON text for an order, signed with a raw 32-byte private key."""
    key = Ed25519PrivateKey.from_private_bytes(private_key)
    text = encode(order)
    envelope = Envelope(
        key_id=key_id(key.public_key().public_bytes_raw()),
        order=text.decode(),
        signature=base64.b64encode(key.sign(text)).decode(),
        version=order.version,
    )
    return encode(envelope).decode()


def unseal(text: str, *, host: str, public_keys: Mapping[str, bytes]) -> AnyOrder:
    """Verify and read an order meant for `host`; `public_keys` maps key id to raw key.

    The order is decoded only after its signature was verified. Its times are checked when it starts
    (worker.orders.executor). Raises ContractError.
    """
    envelope = decode(text, Envelope, limit=2 * MAX_ORDER_BYTES)
    public_key = public_keys.get(envelope.key_id)
    if public_key is None:
        raise BadSignature(f"The order is signed with key {envelope.key_id}, which this host does not trust.")
    try:
        signature = base64.b64decode(envelope.signature, validate=True)
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, as_bytes(envelope.order, "The order"))
    except (InvalidSignature, binascii.Error, ValueError) as error:
        raise BadSignature("The order's signature does not match its text.") from error
    order = decode_order(envelope.order)
    if order.host != host:
        raise WrongOrder(f"The order is for host {order.host}, this is host {host}.")
    return order
