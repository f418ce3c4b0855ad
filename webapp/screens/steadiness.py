"""The verdict on the series of a trial in words, with its numbers."""

from webapp.core.formatting import significant
from webapp.results.reading.rows import ResultRow
from webapp.results.steadiness import Steadiness, Verdict


def steadiness_words(result: ResultRow) -> str:
    """`drifting: −14 % from start to end`; – without samples."""
    found = Steadiness.stored(result.steadiness, result.steadiness_numbers)
    return _words(found) if found else "–"


def _words(found: Steadiness) -> str:
    match found.verdict:
        case Verdict.STALLED:
            return f"stalled: {found.stalled_s} s near zero, {found.stall_s} s in a row"
        case Verdict.STEPPED:
            return f"stepped: {_signed(found.step)} at {found.step_at_s} s"
        case Verdict.DRIFTING:
            return f"drifting: {_signed(found.drift)} from start to end"
        case Verdict.BURSTY:
            return f"bursty: ±{significant(found.variation * 100)} % between seconds"
        case Verdict.TOO_SHORT:
            return "too short to judge"
    return f"steady: ±{significant(found.variation * 100)} % between seconds"


def _signed(share: float) -> str:
    text = significant(share * 100)
    return f"{'' if text.startswith('−') else '+'}{text} %"
