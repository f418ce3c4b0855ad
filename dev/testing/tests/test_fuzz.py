"""A short run of the fuzzer: the contract refuses damaged messages with a ContractError."""

import subprocess
import sys

import pytest
from hypothesis import given, seed, settings

from dev.stack.state import REPOSITORY
from dev.testing.fuzz import DECODERS, accepted, damaged, run, valid_messages

VALID = valid_messages()


def inputs(seed_: int, count: int) -> list[bytes]:
    found: list[bytes] = []

    @seed(seed_)
    @settings(max_examples=count, database=None)
    @given(damaged(VALID))
    def collect(text: bytes) -> None:
        found.append(text)

    collect()
    return found


@pytest.mark.parametrize("seed_", [1, 2])
def test_the_decoders_raise_nothing_but_contract_errors(seed_: int) -> None:
    read = [text for text in inputs(seed_, 3000) if sum(accepted(each, text) for each in DECODERS.values())]
    assert len(read) > 30, "damaged beyond recognition: the inputs do not test the messages"


def test_it_makes_the_same_inputs_for_the_same_seed() -> None:
    assert inputs(5, 20) == inputs(5, 20)


@pytest.mark.parametrize("name", DECODERS)
def test_it_refuses_half_of_a_surrogate_pair(name: str) -> None:
    assert not accepted(DECODERS[name], b'{"order": "\\ud800"}')
    assert not accepted(DECODERS[name], b"\xed\xa0\x80")


def test_it_prints_the_smallest_input_that_causes_another_error(capfd: pytest.CaptureFixture[str]) -> None:
    def fails_for_long_texts(text: bytes) -> None:
        if len(text) > 100:
            raise KeyError("bug")

    assert not run("long texts", 500, VALID, fails_for_long_texts, 1)
    assert "KeyError: 'bug'" in capfd.readouterr().err


@pytest.mark.pipeline
def test_the_application_answers_no_5xx() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dev.testing.fuzz", "--inputs", "1600", "--posts", "200", "--seed", "11"],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
