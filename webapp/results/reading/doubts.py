"""Why a valid result may not be the speed of the drive, in words, with the numbers."""

from webapp.core.formatting import significant
from webapp.results.reading.rows import ResultRow
from worker.contract.inventory import MEMORY_FILE_SYSTEMS
from worker.contract.steadiness import LABELS, NOT_STEADY, Steadiness, Verdict

MIN_FROM_DRIVE = 0.9  # share of the bytes
COPY_METHOD = "copy_method"  # a factor of the file copy engine
PURGED = "purged"  # worker.drives.state.DriveState


def doubts(result: ResultRow) -> list[str]:
    """Sentences without a full stop; none if there is no doubt."""
    found = []
    found += _no_drive(result) or _not_from_drive(result)
    if result.settings_changed:
        found.append("a setting was changed by something else during the measurement")
    if result.steadiness in NOT_STEADY:
        found.append(f"not steady, {steadiness_words(result)}")
    return found


def short_doubts(result: ResultRow) -> list[str]:
    """The same in a few words: `drifting`, `reads not from the drive`."""
    found = [LABELS[Verdict(result.steadiness)]] if result.steadiness in NOT_STEADY else []
    if result.settings_changed:
        found.append("setting changed meanwhile")
    if _no_drive(result):
        found.append("memory, not a drive")
    elif _missed(result):
        found.append(f"{result.direction}s not {'from' if result.direction == 'read' else 'to'} the drive")
    elif _not_from_drive(result):
        found.append("reads of a purged drive")
    return found


def _no_drive(result: ResultRow) -> list[str]:
    file_system, device = result.facts.get("file_system", ""), result.facts.get("device.kind", "")
    what = file_system if file_system in MEMORY_FILE_SYSTEMS else "zram" if device == "zram" else ""
    return [f"measured on {what}, which is memory and not a drive"] if what else []


def _missed(result: ResultRow) -> str:
    """The part of the bytes that never reached the drive; "" if it is small or unknown, and for writes but copies."""
    share = result.device_share
    if share is None or share >= MIN_FROM_DRIVE or (result.direction != "read" and COPY_METHOD not in result.point):
        return ""
    return f"{significant(100 * (1 - share))} %"


def _not_from_drive(result: ResultRow) -> list[str]:
    if missed := _missed(result):
        return [f"{missed} of the {result.direction}s never reached the drive{_instead(result)}"]
    if result.direction == "read" and result.drive_state == PURGED and COPY_METHOD not in result.point:
        return ["the drive was purged and not written since, so it can answer reads without reading its flash"]
    return []


def _instead(result: ResultRow) -> str:
    if COPY_METHOD in result.point:
        return ": the copy shares blocks with its source, or the page cache holds them"
    return f", but came from {'holes or unwritten parts of files' if result.point.get('direct') else 'the page cache'}"


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
