"""Ed25519 signatures over orders. The worker pins the server's public keys at enrolment."""

import base64
import binascii
import hashlib
from collections.abc import Mapping

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from worker.contract.base import CONTRACT_VERSION, MAX_ORDER_BYTES, ContractError, Id, Message, as_bytes, decode, encode
from worker.contract.orders import AnyOrder, decode_order


class BadSignature(ContractError):
    code = "bad_signature"


class WrongOrder(ContractError):
    """Signed by the server, but for another host or another time."""

    code = "wrong_order"


class Envelope(Message, frozen=True, kw_only=True):
    """An order in the broker: its exact text and the signature of the text."""

    key_id: Id
    order: str
    signature: str  # base64 of 64 bytes
    version: int = CONTRACT_VERSION


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


def unseal(text: str, *, host: str, public_keys: Mapping[str, bytes], now: float) -> AnyOrder:
    """Verify and read an order meant for `host`; `public_keys` maps key id to raw key.

    The order is decoded only after its signature was verified. Raises ContractError.
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
    if order.expires_at < now:
        raise WrongOrder(f"The order expired {now - order.expires_at:.0f} s ago.")
    return order
