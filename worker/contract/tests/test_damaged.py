"""Decoders refuse every damaged message with a ContractError."""

import pytest
from hypothesis import given

from worker.contract.tests.damaged import DECODERS, accepted, damaged, times, valid_messages


def test_the_decoders_raise_nothing_but_contract_errors() -> None:
    read: list[bytes] = []

    @times(60)
    @given(damaged(valid_messages()))
    def check(text: bytes) -> None:
        if sum(accepted(decoder, text) for decoder in DECODERS.values()):
            read.append(text)

    check()
    assert len(read) > 60, "damaged beyond recognition: the inputs do not test the messages"


@pytest.mark.parametrize("name", DECODERS)
def test_it_refuses_half_of_a_surrogate_pair(name: str) -> None:
    assert not accepted(DECODERS[name], b'{"order": "\\ud800"}')
    assert not accepted(DECODERS[name], b"\xed\xa0\x80")
