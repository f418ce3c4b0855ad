"""Trials that other load disturbed are recognised, repeated and reported; they are no errors of the product."""

from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue

import pytest

from dev.truth import events
from dev.truth.drive import Disturbed, Drive
from dev.truth.events import Outcome, cases
from dev.truth.trial import Trial
from worker.contract.items import Direction, DirectionSample, Sample, StreamResult
from worker.contract.steadiness import Verdict
from worker.engines.base import StreamFailed

STEP = next(case for case in cases() if case.verdict is Verdict.STEPPED)
FREEZE = next(case for case in cases() if case.freeze_s == 3)
RESULT = StreamResult(
    stream=0, started_at=0.0, ended_at=20.0, engine_version="fio-3.33", exit_code=0, stderr="", directions=(),
    usr_cpu_percent=0, sys_cpu_percent=0, device=None, samples=20,
)  # fmt: skip


def trial(rates: Sequence[int]) -> Trial:
    """I/Os of each second."""
    return Trial(RESULT, tuple(
        Sample(stream=0, offset_ms=1000 * second, length_ms=1000, at=float(second), directions=(
            DirectionSample(direction=Direction.READ, ios=ios, bytes=4096 * ios, latency=b""),
        ))
        for second, ios in enumerate(rates, 1)
    ))  # fmt: skip


STEPPED = [1000] * 10 + [500] * 10
FROZEN = [1000] * 5 + [0] * 3 + [1000] * 5


@pytest.mark.parametrize(
    ("outcome", "count"),
    [
        (Outcome(STEP, trial(STEPPED), [10.0]), 0),
        (Outcome(STEP, trial([*STEPPED[:4], 700, *STEPPED[5:]]), [10.0]), 1),
        (Outcome(STEP, trial([*STEPPED[:9], 700, 600, *STEPPED[11:]]), [10.0]), 0),
        (Outcome(STEP, trial(STEPPED), [10.0], late_s=0.9), 1),
        (Outcome(FREEZE, trial(FROZEN), [5.0, 8.0]), 0),
        (Outcome(FREEZE, trial([*FROZEN[:6], 3, *FROZEN[7:]]), [5.0, 8.0]), 1),
    ],
    ids=("undisturbed", "a slow second", "seconds beside the step", "late", "frozen", "read by another program"),
)
def test_it_recognises_a_disturbed_trial(outcome: Outcome, count: int) -> None:
    assert len(outcome.disturbances) == count


class Steady:
    """A drive that does nothing."""

    path = Path("/dev/null")

    def limit(self, _limit: object) -> None:
        pass

    def freeze(self) -> None:
        pass


class Still:
    """A script that changed the drive in time."""

    def __init__(self, _actions: object) -> None:
        self.done_at, self.late_s = [10.0], [0.0]

    def join(self) -> None:
        pass


@pytest.mark.parametrize("failure", [StreamFailed("fio_silent", "fio printed nothing"), None])
def test_it_repeats_a_disturbed_trial_and_then_says_so(
    monkeypatch: pytest.MonkeyPatch, failure: StreamFailed | None
) -> None:
    def run(_drive: object, _work: object) -> Trial:
        if failure:
            raise failure
        return trial([*STEPPED[:4], 700, *STEPPED[5:]])

    monkeypatch.setattr(events, "run", run)
    monkeypatch.setattr(events, "Script", Still)
    free: SimpleQueue[Drive] = SimpleQueue()
    free.put(Steady())  # type: ignore[arg-type]
    tried = events._tried(STEP, free)
    assert (tried.tries, bool(tried.disturbances)) == (events.TRIES, True)
    monkeypatch.setattr(events, "_measured", lambda _cases: [tried])
    monkeypatch.setattr(events, "differences", lambda _trial: [])
    with pytest.raises(Disturbed) as disturbed:
        events.figures([STEP])
    assert len(disturbed.value.trials) == 1
    assert all(figure.met for figure in disturbed.value.figures)
