"""What the guard refuses."""

import pytest

from worker import guard
from worker.contract.workload import Stream
from worker.guard.refusal import GuardRefused
from worker.policy import Policy


def refusal(stream: Stream, allowed: Policy, armed: tuple[str, ...] | None = None) -> GuardRefused:
    """The refusal of a stream that is armed unless `armed` says otherwise."""
    with (
        pytest.raises(GuardRefused) as caught,
        guard.admit(stream, allowed, (stream.target.stable_id,) if armed is None else armed),
    ):
        pass
    return caught.value
