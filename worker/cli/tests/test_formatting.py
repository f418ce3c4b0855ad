from worker.cli.formatting import latency, size
from worker.contract.packing import LAST_BUCKET_NS


def test_a_latency_in_fios_last_bucket_is_more_than_17_s() -> None:
    assert (latency(LAST_BUCKET_NS), latency(17_000_000_000), latency(None)) == ("> 17 s", "17 s", "–")


def test_sizes_are_in_binary_units() -> None:
    assert (size(1023), size(1536), size(2**60), size(None)) == ("1023 B", "1.5 KiB", "1024 PiB", "–")
