"""Answers in Redis: computed once, read by all processes until something that they depend on changes.

An answer is stored for its question, the seal of what it depends on (`core.changes`) and the code that computed it. So
an old answer need not be removed: nobody asks for it any more. Redis is the broker and must not fill up. Therefore each
question has one of SLOTS places, in which a newer answer replaces the older one. Without Redis, each answer is
computed.

What many runs contribute to an answer is stored as parts, one for each run, under the seal of that run alone. After a
run has ended, only its own part is computed.
"""

import hashlib
import hmac
import logging
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
import redis
from django.conf import settings
from django.utils import timezone

from webapp.core import changes

log = logging.getLogger(__name__)

SLOTS, MOST_BYTES = 2_048, 128 * 1024  # together 256 MB; an answer has 1 to 40 kB
PART_SLOTS, MOST_PART_BYTES = 8_192, 32 * 1024  # together 256 MB; a part has about 5 kB
LIFETIME_S = 24 * 3600
REDIS_LIMIT_S = 0.25
PAUSE_S = 10.0  # without Redis after it did not answer
COMPUTING_S = 5.0  # others wait at most so long for an answer that somebody computes
ASK_AGAIN_S = 0.02
RENEWAL_S = 15.0  # for which an earlier answer is shown
_SIGNATURE_BYTES, _HEADER_BYTES = 32, 16

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Question(Generic[Answer]):
    """`texts` determine the answer together with the rows of `scopes`, and with the reader's time zone if it has times.
    `kind`: a msgspec struct or a dataclass. What `compute` raises is not stored. `seal`: of the scopes, if the caller
    has read it together with another."""

    texts: tuple[str, ...]
    scopes: tuple[str, ...]
    kind: type[Answer]
    compute: Callable[[], Answer]
    names_times: bool = True
    seal: int | None = None

    @cached_property
    def _encoded(self) -> bytes:
        zone = timezone.get_current_timezone_name() if self.names_times else ""
        return msgspec.json.encode([self.kind.__qualname__, zone, *self.texts])

    @property
    def slot(self) -> str:
        return f"answer:{int.from_bytes(hashlib.sha256(self._encoded).digest()[:4]) % SLOTS}"

    def key(self, seal: int) -> bytes:
        return _key(self._encoded, seal)


def answered(question: Question[Answer]) -> Answer:
    return all_answered([question])[0]


def all_answered(questions: Sequence[Question[Answer]]) -> list[Answer]:
    """Those stored are read with one database query and one command to Redis."""
    seals = changes.seals([question.scopes for question in questions])
    keys = [question.key(seal) for question, seal in zip(questions, seals, strict=True)]
    stored = _read([question.slot for question in questions], keys)
    return [
        _computed(question, key) if packed is None else _unpacked(packed, question.kind)
        for question, key, packed in zip(questions, keys, stored, strict=True)
    ]


@dataclass(frozen=True)
class Parts(Generic[Answer]):
    """`scopes`: the scope of each part, by its name. `compute` gets the names of those that have changed, and returns
    all of them."""

    texts: tuple[str, ...]
    scopes: Mapping[str, str]
    kind: type[Answer]
    compute: Callable[[Sequence[str]], Mapping[str, Answer]]


def all_parts(parts: Parts[Answer]) -> dict[str, Answer]:
    """By name, in the order of the scopes. Those stored are read with one database query and one command to Redis."""
    names = [*parts.scopes]
    seals = changes.seals([[scope] for scope in parts.scopes.values()])
    encoded = [msgspec.json.encode([parts.kind.__qualname__, *parts.texts, name]) for name in names]
    keys = [_key(each, seal) for each, seal in zip(encoded, seals, strict=True)]
    slots = [f"answer:part:{int.from_bytes(key[:4]) % PART_SLOTS}" for key in keys]
    stored = dict(zip(names, _read(slots, keys), strict=True))
    due = [name for name in names if stored[name] is None]
    computed = parts.compute(due) if due else {}
    for name, slot, key in zip(names, slots, keys, strict=True):
        if name in computed:
            _write(slot, key, _packed(key, computed[name]), MOST_PART_BYTES)
    return {
        name: computed[name] if packed is None else _unpacked(packed, parts.kind) for name, packed in stored.items()
    }


def _computed(question: Question[Answer], key: bytes) -> Answer:
    """Or that of another thread or process which computes it now."""
    if packed := _claim(question.slot, key):
        return _unpacked(packed, question.kind)
    try:
        answer = question.compute()
        _write(question.slot, key, _packed(key, answer), MOST_BYTES)
    finally:
        _ask(lambda client: client.delete(_claimed(key), _renewed(question)))
    return answer


def answered_or_earlier(question: Question[Answer], renew: Callable[[], object]) -> tuple[Answer, datetime | None]:
    """The answer and None; or, for RENEWAL_S after a reader has met a change, the answer from before it and the time
    when that was computed, which the page must state. `renew` has the new answer computed elsewhere. If that takes
    longer, readers compute it themselves."""
    seal = changes.seal(question.scopes) if question.seal is None else question.seal
    stored = _ask(lambda client: client.get(question.slot))
    if isinstance(stored, bytes):
        its_seal = int.from_bytes(stored[_SIGNATURE_BYTES:][:8], signed=True)
        packed = _signed_for(question.key(its_seal), stored)
        if packed is not None and (its_seal == seal or _is_being_renewed(question, renew)):
            at = datetime.fromtimestamp(int.from_bytes(packed[8:_HEADER_BYTES]) / 1000, UTC)
            return _unpacked(packed, question.kind), None if its_seal == seal else at
    return _computed(question, question.key(seal)), None


def _is_being_renewed(question: Question[Answer], renew: Callable[[], object]) -> bool:
    """Asks for it once. The mark stays longer than it counts, so that readers compute if nobody else does."""
    mark, life_ms = _renewed(question), round(2_000 * RENEWAL_S)
    if _ask(lambda client: client.set(mark, b"", nx=True, px=life_ms)):
        renew()
    left_ms = _ask(lambda client: client.pttl(mark))
    return isinstance(left_ms, int) and left_ms > life_ms / 2


def _renewed(question: Question[Answer]) -> str:
    return f"answer:renewed:{question.key(0).hex()}"


def _key(encoded: bytes, seal: int) -> bytes:
    """Of a question and of the code, and last the seal."""
    return hashlib.sha256(_code() + encoded).digest() + seal.to_bytes(8, signed=True)


def _packed(key: bytes, answer: object) -> bytes:
    """With the seal and the time in ms before it."""
    at_ms = round(1000 * time.time())
    return key[-8:] + at_ms.to_bytes(8) + zlib.compress(msgspec.msgpack.encode(answer), level=1)


def _unpacked(packed: bytes, kind: type[Answer]) -> Answer:
    return msgspec.msgpack.decode(zlib.decompress(packed[_HEADER_BYTES:]), type=kind)


@cache
def _code() -> bytes:
    """A digest of the code: other code computes other answers, or stores them in another form."""
    root = Path(__file__).resolve().parents[2]
    files = sorted(path for part in ("webapp", "worker") for path in (root / part).rglob("*.py"))
    digest = hashlib.sha256()
    for path in files:
        if "tests" not in path.parts:
            digest.update(path.read_bytes())
    return digest.digest()


@cache
def _client() -> redis.Redis:
    limits = {"socket_connect_timeout": REDIS_LIMIT_S, "socket_timeout": REDIS_LIMIT_S}
    return redis.Redis.from_url(settings.REDIS_URL, **limits, **settings.BROKER_TLS)


_silent_until_s = 0.0  # time.monotonic()


def _ask(command: Callable[[redis.Redis], object]) -> object:
    """None without Redis."""
    global _silent_until_s
    if time.monotonic() < _silent_until_s:
        return None
    try:
        return command(_client())
    except redis.RedisError as error:
        _silent_until_s = time.monotonic() + PAUSE_S
        log.warning("Answers are computed without Redis for %.0f s: %s", PAUSE_S, error)
        return None


def _read(slots: Sequence[str], keys: Sequence[bytes]) -> list[bytes | None]:
    """None where there is no answer under the key."""
    values = _ask(lambda client: client.mget(slots)) if slots else None
    stored = values if isinstance(values, list) else [None] * len(slots)
    return [_signed_for(key, packed) for key, packed in zip(keys, stored, strict=True)]


def _signed_for(key: bytes, stored: bytes | None) -> bytes | None:
    if stored is None:
        return None
    signature, packed = stored[:_SIGNATURE_BYTES], stored[_SIGNATURE_BYTES:]
    return packed if hmac.compare_digest(signature, _signature(key, packed)) else None


def _signature(key: bytes, packed: bytes) -> bytes:
    """Who can write to Redis cannot change an answer, nor give it to another question."""
    return hmac.digest(settings.SECRET_KEY.encode(), b"answer" + key + packed, "sha256")


def _write(slot: str, key: bytes, packed: bytes, most_bytes: int) -> None:
    if len(packed) <= most_bytes:
        _ask(lambda client: client.set(slot, _signature(key, packed) + packed, ex=LIFETIME_S))


def _claim(slot: str, key: bytes) -> bytes | None:
    """The answer that another thread or process is computing, or has computed since the caller looked. None if nobody
    is: the caller computes it, and others wait."""
    until_s = time.monotonic() + COMPUTING_S
    for_ms = round(1000 * COMPUTING_S)
    while True:
        taken = _ask(lambda client: bool(client.set(_claimed(key), b"", nx=True, px=for_ms)))
        if packed := _read([slot], [key])[0]:
            if taken:
                _ask(lambda client: client.delete(_claimed(key)))
            return packed
        if taken is not False or time.monotonic() > until_s:
            return None
        time.sleep(ASK_AGAIN_S)


def _claimed(key: bytes) -> str:
    return f"answer:claimed:{key.hex()}"
