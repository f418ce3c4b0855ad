from worker.cli.formatting import latency
from worker.contract.packing import LAST_BUCKET_NS


def test_a_latency_in_fios_last_bucket_is_more_than_17_s() -> None:
    assert (latency(LAST_BUCKET_NS), latency(17_000_000_000), latency(None)) == ("> 17 s", "17 s", "–")
