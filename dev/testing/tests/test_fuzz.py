"""The fuzz campaign, short: damaged messages are refused in words and in no other way."""

import subprocess
import sys

import pytest

from dev.stack.state import REPOSITORY
from dev.testing.fuzz import DECODERS, Fuzzer, decoded
from worker.contract.base import Message, encode
from worker.contract.tests import examples

VALID = [encode(value) for value in vars(examples).values() if isinstance(value, Message)]


@pytest.mark.parametrize("seed", [1, 2])
def test_it_gets_nothing_but_refusals_out_of_the_decoders(seed: int) -> None:
    fuzzer, troubles = Fuzzer(seed, VALID), list[str]()
    found = [decoded(fuzzer.text(), troubles) for _ in range(3000)]
    assert not troubles, troubles[:3]
    assert found.count("read") > 30, "damaged beyond recognition: nothing of the messages is tried"


def test_it_makes_the_same_texts_for_the_same_seed() -> None:
    assert [Fuzzer(5, VALID).text() for _ in range(5)] == [Fuzzer(5, VALID).text() for _ in range(5)]


@pytest.mark.parametrize("name", DECODERS)
def test_it_refuses_half_of_a_surrogate_pair(name: str) -> None:
    troubles: list[str] = []
    assert decoded(b'{"order": "\\ud800"}', troubles) == "refused"
    assert decoded(b"\xed\xa0\x80", troubles) == "refused"
    assert not troubles


@pytest.mark.pipeline
def test_it_gets_no_500_out_of_the_application() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dev.testing.fuzz", "--inputs", "1600", "--seed", "11", "--post-every", "8"],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
