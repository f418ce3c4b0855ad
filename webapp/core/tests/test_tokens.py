"""Tokens are random, kept only as a hash, and survive being pasted into a shell."""

import hashlib

from webapp.core.tokens import RANDOM_BYTES, hash_token, new_token


def test_it_has_256_bits_and_no_character_that_a_shell_or_a_parser_minds() -> None:
    plain, _ = new_token()
    assert len(plain) == 2 * RANDOM_BYTES == 64
    assert set(plain) <= set("0123456789abcdef")


def test_it_is_another_one_each_time() -> None:
    assert len({new_token()[0] for _ in range(100)}) == 100


def test_it_is_kept_as_its_sha_256() -> None:
    plain, kept = new_token()
    assert kept == hash_token(plain) == hashlib.sha256(plain.encode()).hexdigest()
    assert plain not in kept


def test_it_hashes_whatever_a_stranger_sends() -> None:
    assert len(hash_token("\ud800 not a token")) == 64
