"""Who may destroy what, and until when."""

import pytest

from worker.contract.orders import Arming
from worker.contract.workload import FioWorkload, Pattern, Stream, TargetKind, TargetRef
from worker.guard import serials_in_time, writes
from worker.guard.refusal import GuardRefused

ARMING = Arming(serials=("SN1",), by="olga", until=1000.0)


def stream(kind: TargetKind, pattern: Pattern) -> Stream:
    target = TargetRef(id="x", kind=kind, path="/dev/x", stable_id="wwn-1")
    return Stream(number=0, target=target, workload=FioWorkload(pattern=pattern, runtime_s=1, size_bytes=4096))


def test_the_serials_hold_until_the_arming_expires() -> None:
    assert serials_in_time(ARMING, now=1000.0, destroys=True) == ("SN1",)
    with pytest.raises(GuardRefused, match=r"olga armed this until 1970-01-01 00:16 UTC.*SN1") as refused:
        serials_in_time(ARMING, now=1000.1, destroys=True)
    assert refused.value.code == "guard_arming_expired"


@pytest.mark.parametrize(("began", "holds"), [(999.0, True), (1001.0, False), (9999.0, False)])
def test_a_run_that_began_in_time_goes_on(began: float, holds: bool) -> None:
    arming = Arming(serials=("SN1",), by="olga", until=1000.0, run_began=began)
    assert bool(serials_in_time(arming, now=5000.0, destroys=False)) is holds


def test_nothing_armed_is_no_serial() -> None:
    assert serials_in_time(None, now=0.0, destroys=True) == ()


def test_only_files_of_our_own_may_be_written_unarmed() -> None:
    assert writes([stream(TargetKind.BLOCK, Pattern.READ), stream(TargetKind.FILE, Pattern.RANDRW)])
    assert writes([stream(TargetKind.BLOCK, Pattern.WRITE)])
    assert not writes([stream(TargetKind.BLOCK, Pattern.RANDREAD), stream(TargetKind.DIRECTORY, Pattern.WRITE)])
