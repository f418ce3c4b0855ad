"""The current phase of an attempt, as a sentence for people."""

from collections.abc import Callable, Mapping

import msgspec

from webapp.core import formatting
from webapp.runs.models import Attempt
from worker.contract.items import Phase, PhaseName
from worker.recipes import step_words


def doing(attempt: Attempt) -> str:
    """The phase, or the attempt's state before the first reported phase."""
    return phase_sentence(attempt) or attempt.get_state_display().lower()


def phase_sentence(attempt: Attempt) -> str:
    """“writing 1 file of 256 MiB before stream 0, 41 %”; "" before the first phase."""
    if not attempt.phase:
        return ""
    phase = msgspec.convert(attempt.phase, Phase)
    percent = "" if phase.percent is None else f", {phase.percent:.0f} %"
    return _SENTENCES[phase.name](phase) + percent


def _purge(phase: Phase) -> str:
    takes = "" if phase.expected_s is None else f", which takes about {formatting.duration(phase.expected_s)}"
    return f"purging {phase.target} by {phase.method}{takes}"


def _prefill(phase: Phase) -> str:
    size = "" if phase.file_bytes is None else f" of {formatting.bytes_binary(phase.file_bytes)}"
    what = f"{phase.files} {'file' if phase.files == 1 else 'files'}" if phase.files else "the device"
    return f"writing {what}{size} before stream {phase.stream}"


def _prepare(phase: Phase) -> str:
    return f"step before the measurement: {step_words(phase.step)}" if phase.step else "preparing"


_SENTENCES: Mapping[PhaseName, Callable[[Phase], str]] = {
    PhaseName.GUARD: lambda _: "checking the target",
    PhaseName.PURGE: _purge,
    PhaseName.LAYOUT: lambda phase: f"building the layout {phase.layout}",
    PhaseName.SETTINGS: lambda _: "changing settings",
    PhaseName.PREFILL: _prefill,
    PhaseName.PREPARE: _prepare,
    PhaseName.RUN: lambda _: "measuring",
}
