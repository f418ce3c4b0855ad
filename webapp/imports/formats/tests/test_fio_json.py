import json
import math
import re
from collections.abc import Callable
from typing import Any

import pytest

from webapp.imports.formats import fio_json
from webapp.imports.formats.fio_json_document import bin_value
from webapp.imports.formats.tests.examples import only, parsed, text
from webapp.imports.values import ImportRefused
from webapp.results.reading.doubts import CONTRADICTION, JOB_ERROR
from worker.contract.items import Direction

READ, WRITE = Direction.READ, Direction.WRITE


def _document(name: str) -> dict[str, Any]:
    found = text(f"fio-json/{name}")
    document: dict[str, Any] = json.loads(found[found.index("\n{") if not found.startswith("{") else 0 :])
    return document


def _job(**changes: object) -> str:
    document = _document("3.1-group.json")
    document["jobs"][0] |= changes
    return json.dumps(document, indent=2)


def test_it_reads_a_group() -> None:
    (measured,) = parsed("fio-json/3.1-group.json")
    job = _document("3.1-group.json")["jobs"][0]
    flow = job["write"]
    assert (measured.tool, measured.tool_version, measured.name) == ("fio", "3.1", job["jobname"])
    assert measured.direction is WRITE
    assert measured.factors == {
        "pattern": "randwrite",
        "block_size": 4096,
        "ioengine": "libaio",
        "iodepth": 32,
        "numjobs": 4,
        "direct": True,
        "runtime": 60,
        "buffers": "refilled",
    }
    assert measured.iops == flow["iops"]
    assert measured.bytes_per_s == pytest.approx(flow["bw"] * 1024, abs=1024)  # 3.1 has no bw_bytes
    assert (measured.ios, measured.bytes, measured.runtime_ms) == (
        flow["total_ios"],
        flow["io_bytes"],
        flow["runtime"],
    )
    assert measured.latency.kind == "clat"  # percentiles only of the completion latency
    assert measured.latency.mean_ns == flow["clat_ns"]["mean"]
    assert measured.latency.percentiles[99.99] == flow["clat_ns"]["percentile"]["99.990000"]
    assert measured.metrics["lat_mean_ns"] == flow["lat_ns"]["mean"]
    assert measured.measured_at is not None
    assert measured.measured_at.timestamp() == pytest.approx(_document("3.1-group.json")["timestamp_ms"] / 1000)


def test_usr_cpu_is_of_all_jobs() -> None:
    (measured,) = parsed("fio-json/3.1-group.json")
    job = _document("3.1-group.json")["jobs"][0]
    assert measured.metrics["usr_cpu_percent"] == pytest.approx(job["usr_cpu"] * 4, rel=0.01)


def test_entries_of_one_section_are_one_measurement() -> None:
    found = parsed("fio-json/3.33-each-job.json")
    jobs = _document("3.33-each-job.json")["jobs"]
    assert len(jobs) == 2
    read = only(found, READ)
    assert read.ios == sum(job["read"]["total_ios"] for job in jobs)
    assert read.bytes == sum(job["read"]["io_bytes"] for job in jobs)
    assert read.runtime_ms == max(job["read"]["runtime"] for job in jobs)
    assert read.iops == pytest.approx((read.ios or 0) * 1000 / (read.runtime_ms or 1))
    assert read.latency.histogram.total == sum(sum(job["read"]["clat_ns"]["bins"].values()) for job in jobs)
    assert read.latency.min_ns == min(job["read"]["clat_ns"]["min"] for job in jobs)
    assert read.factors["numjobs"] == 2
    assert read.factors["read_percent"] == 70


def test_several_clients_give_what_fio_calls_all_clients() -> None:
    """fio's own combination of the same jobs is in the file."""
    read = only(parsed("fio-json/3.33-client.json"), READ)
    both = _document("3.33-client.json")["client_stats"][-1]
    assert both["jobname"] == "All clients"
    assert read.ios == both["read"]["total_ios"]
    assert read.latency.mean_ns == pytest.approx(both["read"]["clat_ns"]["mean"], rel=1e-6)
    assert read.latency.stddev_ns == pytest.approx(both["read"]["clat_ns"]["stddev"], rel=1e-6)
    assert read.other["clients"] == "127.0.0.1"


def test_the_last_status_counts() -> None:
    (measured,) = parsed("fio-json/3.33-status-interval.txt")
    whole = text("fio-json/3.33-status-interval.txt")
    begins = [match.start() for match in re.finditer(r"^\{", whole, re.MULTILINE)]
    counts = [json.JSONDecoder().raw_decode(whole, begin)[0]["jobs"][0]["write"]["total_ios"] for begin in begins]
    assert len(counts) > 3
    assert measured.ios == counts[-1] == max(counts)
    assert measured.factors["pattern"] == "write"
    assert measured.notes[0].startswith(f"The file has {len(counts)} JSON objects")


def test_of_a_stream_that_is_cut_off_the_last_whole_object_counts() -> None:
    whole = text("fio-json/3.33-status-interval.txt")
    begins = [match.start() for match in re.finditer(r"^\{", whole, re.MULTILINE)]
    before = fio_json.parse(whole[: begins[-1]])
    for end in (begins[-1] + 1, begins[-1] + 500, whole.rstrip().rindex("}")):
        (measured,) = fio_json.parse(whole[:end])
        assert (measured.ios, measured.runtime_ms) == (before[0].ios, before[0].runtime_ms)
        assert measured.notes[0].startswith(f"The file has {len(begins)} JSON objects")
        assert "its values are of the time until then, not of the whole test" in measured.notes[0]
    with pytest.raises(ImportRefused, match="damaged or truncated"):
        fio_json.parse(whole[: begins[0] + 500])


@pytest.mark.parametrize(
    ("version", "depth", "known"), [("3.33", 1, 0), ("3.35", 1, 1), ("3.35", 32, 0), ("3.36", 32, 1)]
)
def test_wrong_latencies_of_old_versions_are_left_out(version: str, depth: int, known: int) -> None:
    options = {"rw": "randwrite", "ioengine": "io_uring", "sqthread_poll": "1", "iodepth": str(depth)}
    document = _document("3.1-group.json") | {"fio version": f"fio-{version}"}
    document["jobs"][0]["job options"] = options
    (measured,) = fio_json.parse(json.dumps(document, indent=2))
    assert (measured.latency.mean_ns is not None) == known
    assert len(measured.notes) == 1 - known


def test_long_options_are_shortened() -> None:
    (measured,) = fio_json.parse(_job(**{"job options": {"rw": "write", "filename": "/dev/sdx:" * 500}}))
    assert len(measured.other["filename"]) == 500


def test_fio_2_prints_microseconds_and_kib() -> None:
    (measured,) = parsed("fio-json/2.1-each-job.json")
    assert measured.tool_version == "2.1.10"
    assert measured.factors == {}  # no options in this version
    assert measured.iops == 1500
    assert measured.bytes_per_s == 6000 * 1024
    assert measured.bytes == 60000 * 1024
    assert measured.ios is None
    assert measured.latency.mean_ns == 1_350_000  # the version prints no counts: both jobs weigh the same
    assert (measured.latency.min_ns, measured.latency.max_ns) == (40_000, 9_000_000)
    assert measured.notes == (
        "The jobs were reported one by one without histograms, so there are no percentiles of the whole.",
    )
    assert measured.metrics["usr_cpu_percent"] == 4


def test_bins_of_fio_2_are_numbers_of_its_table() -> None:
    assert bin_value(64) == 64
    assert bin_value(127) == 127
    assert bin_value(128) == 129  # the first bin with two values: 128 and 129
    assert bin_value(1855) == pytest.approx(17_112_760_320, rel=1e-6)  # fio's largest latency, about 17.1 s
    flow = {
        "io_bytes": 4,
        "bw": 1,
        "iops": 1,
        "runtime": 1000,
        "total_ios": 3,
        "clat": {
            "min": 1,
            "max": 2,
            "mean": 1,
            "stddev": 0,
            "bins": {"10": 2, "128": 1, "FIO_IO_U_PLAT_BITS": 6, "FIO_IO_U_PLAT_VAL": 64},
        },
    }
    (measured,) = fio_json.parse(json.dumps({"fio version": "fio-2.12", "jobs": [{"jobname": "a", "read": flow}]}))
    assert measured.latency.histogram.latency_ns == (10_000, 129_000)
    assert measured.latency.histogram.counts == (2, 1)


def test_options_without_a_factor_are_kept() -> None:
    options = {"rw": "randwrite", "ioengine": "rados", "filename": "/dev/sdz", "size": "10z"}
    (measured,) = fio_json.parse(_job(**{"job options": options}))
    assert measured.factors == {
        "pattern": "randwrite", "block_size": 4096, "iodepth": 1, "numjobs": 1, "direct": False,
    }  # fmt: skip
    assert measured.other == {"ioengine": "rados", "filename": "/dev/sdz", "size": "10z"}


@pytest.mark.parametrize(
    ("option", "text", "factor"),
    [("bsrange", "4k-8k", "block_range"), ("bssplit", "4k/50:8k/50", "block_split")],
)
def test_several_block_sizes_are_not_the_default_size(option: str, text: str, factor: str) -> None:
    (measured,) = fio_json.parse(_job(**{"job options": {"rw": "randwrite", option: text}}))
    assert measured.factors[factor] == text
    assert "block_size" not in measured.factors


def test_sizes_are_of_each_file_and_amounts_of_all_jobs() -> None:
    options = {"rw": "write", "size": "4g", "nrfiles": "4", "io_size": "1g", "numjobs": "2"}
    (measured,) = fio_json.parse(_job(**{"job options": options}))
    assert measured.factors["size"] == 2**30
    assert measured.factors["amount"] == 2**31


def test_an_error_of_a_job_is_a_doubt() -> None:
    (measured,) = fio_json.parse(_job(error=5))
    assert measured.notes == ("fio reports error 5 in this job.",)
    assert measured.other[JOB_ERROR] == "5"


def test_not_a_number_in_an_unused_field_is_no_obstacle() -> None:
    changed = text("fio-json/3.1-group.json").replace('"bw_agg": 0.0', '"bw_agg": -nan')
    assert "-nan" in changed
    assert len(fio_json.parse(changed)) == 1


def test_a_sign_of_the_shell_before_the_json_is_no_obstacle() -> None:
    json = text("fio-json/3.1-group.json")
    assert fio_json.parse(f">{json}") == fio_json.parse(json)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (lambda t: t[: len(t) // 2], "truncated"),
        (lambda t: re.sub(r'"iops": ([1-9])', r'"iops": -\1', t), "not possible"),
        (lambda t: t.replace('"iops": ', '"iops": NaN, "x": '), "no number for `iops`"),
        (lambda t: re.sub(r'"iops": [1-9]', '"iops": 1e300, "x": 7', t), "not possible"),
        (lambda t: t.replace('"jobs"', '"works"'), "not a result of fio"),
        (lambda t: '{"fio version": "fio-3", "x": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        (lambda t: '{"fio version": "fio-3", "jobs": [' + "{}," * 300_000 + "{}]}", "more than 250,000 objects"),
        (lambda t: "", "no line begins"),
        (lambda t: '{"fio version": "fio-3", "jobs": [{"jobname": "a"}]}', "has done any I/O"),
        (lambda t: "[1, 2]", "not a result of fio"),
    ],
)
def test_it_refuses_with_a_reason(changed: Callable[[str], str], reason: str) -> None:
    with pytest.raises(ImportRefused, match=reason):
        fio_json.parse(changed(text("fio-json/3.1-group.json")))


def test_unified_reporting_is_reads_and_writes_together() -> None:
    """Figures of a published result of fio 2.6, which has only the entry of all clients."""
    mixed = {"io_bytes": 2021176, "bw": 16653, "iops": 2252.49, "runtime": 121363, "total_ios": 273369}
    client = {"jobname": "All clients", "mixed": mixed | {"lat": {"min": 431, "max": 3781314, "mean": 1782.92}}}
    (measured,) = fio_json.parse(json.dumps({"fio version": "fio-2.6", "client_stats": [client]}))
    assert measured.direction is None
    assert measured.iops == 2252.49
    assert (measured.latency.kind, measured.latency.mean_ns) == ("lat", 1_782_920)


def test_fio_2_2_counts_bytes_in_kib() -> None:
    """Figures of a published result of fio 2.2.10: 1,779 reads of 4 KiB."""
    read = {"io_bytes": 7116, "bw": 275, "iops": 68.99, "runtime": 25788, "total_ios": 1779}
    (measured,) = fio_json.parse(
        json.dumps({"fio version": "fio-2.2.10", "jobs": [{"jobname": "random-read", "read": read}]})
    )
    assert measured.bytes == 1779 * 4096
    assert measured.bytes_per_s == 275 * 1024


def test_the_standard_deviation_is_that_of_all_ios() -> None:
    """Two jobs with exact statistics of (1, 3) and (5, 5, 8) in µs."""
    flows = []
    for values in ((1, 3), (5, 5, 8)):
        mean = sum(values) / len(values)
        deviation = math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1))
        clat = {"min": min(values), "max": max(values), "mean": mean, "stddev": deviation, "N": len(values)}
        flow = {"io_bytes": 1, "bw_bytes": 1, "iops": 1, "runtime": 1000, "total_ios": len(values), "clat_ns": clat}
        flows.append({"jobname": "a", "read": flow})
    (measured,) = fio_json.parse(json.dumps({"fio version": "fio-3.1", "jobs": flows}))
    assert measured.latency.mean_ns == pytest.approx(22 / 5)
    assert measured.latency.stddev_ns == pytest.approx(math.sqrt(sum((v - 4.4) ** 2 for v in (1, 3, 5, 5, 8)) / 4))


def _jobs(*jobs: dict[str, Any]) -> str:
    """A result of fio 3.33 with a flow of 1000 I/Os/s for each direction of a job."""
    document = _document("3.33-group.json")
    document["global options"] = {"direct": "1"}
    known = document["jobs"][0]
    document["jobs"] = [{**known, **job} for job in jobs]
    return json.dumps(document, indent=2)


def _did(block: int) -> dict[str, Any]:
    return {"io_bytes": 1000 * block, "io_kbytes": block, "bw_bytes": 1000 * block, "iops": 1000.0, "total_ios": 1000}


def _idle() -> dict[str, Any]:
    return {"io_bytes": 0, "total_ios": 0}


def _reader(**more: object) -> dict[str, Any]:
    return {"jobname": "reader", "job options": {"rw": "randread"}, "read": _did(4096), "write": _idle()} | more


def _writer(**more: object) -> dict[str, Any]:
    return {"jobname": "writer", "job options": {"rw": "randwrite"}, "read": _idle(), "write": _did(4096)} | more


def test_jobs_that_ran_at_the_same_time_name_each_other() -> None:
    together = fio_json.parse(_jobs(_reader(), _writer()))
    assert [one.other.get("ran beside") for one in together] == ["writer", "reader"]
    after_another = fio_json.parse(_jobs(_reader(), _writer(groupid=1)))
    assert [one.other.get("ran beside") for one in after_another] == [None, None]
    waiting = _writer(**{"job options": {"rw": "randwrite", "wait_for": "reader"}})
    assert [one.other.get("ran beside") for one in fio_json.parse(_jobs(_reader(), waiting))] == [None, None]


@pytest.mark.parametrize(("delay", "beside"), [("1", ["writer", "reader"]), ("3s", [None, None])])
def test_a_job_that_starts_later_may_still_overlap(delay: str, beside: list[str | None]) -> None:
    """The reader runs for 3 s."""
    reader = _reader(read=_did(4096) | {"runtime": 3000})
    delayed = _writer(**{"job options": {"rw": "randwrite", "startdelay": delay}})
    assert [one.other.get("ran beside") for one in fio_json.parse(_jobs(reader, delayed))] == beside


@pytest.mark.parametrize(
    "entry",
    [
        _reader(**{"job options": {"name": "writer", "rw": "randread"}}),  # options on the command line have a name
        _reader(write=_did(4096)),  # rw=randread does not write
        _reader(read=_did(39_000)),  # bs=4k and bs=64k together
    ],
)
def test_options_of_one_of_several_merged_jobs_are_left_out(entry: dict[str, Any]) -> None:
    """group_reporting prints the sum of different jobs with the options of the last of them."""
    for measured in fio_json.parse(_jobs(entry)):
        assert measured.factors == {"direct": True}  # a global option
        assert any("group_reporting" in note for note in measured.notes)


def test_more_processes_than_the_options_state_are_those_of_another_section() -> None:
    options = {"rw": "randread", "iodepth": "32", "numjobs": "3"}
    entry = _reader(**{"job options": options, "read": _did(4096) | {"runtime": 1000}})
    (alone,) = fio_json.parse(_jobs(entry | {"job_runtime": 3000}))
    assert (alone.factors["iodepth"], alone.factors["numjobs"]) == (32, 3)
    (merged,) = fio_json.parse(_jobs(entry | {"job_runtime": 4000}))
    assert merged.factors == {"direct": True}


@pytest.mark.parametrize(("version", "numjobs"), [("fio-2.2", 1), ("fio-2.3", None), ("fio-3.4", None), ("fio-3.5", 1)])
def test_numjobs_of_the_section_global_is_unknown_where_fio_does_not_print_it(version: str, numjobs: int) -> None:
    """stat.c of 2.3 to 3.3 (json_add_job_opts, axboe/fio issue 237)."""
    document = json.loads(_job(**{"job options": {"rw": "randwrite", "io_size": "1g"}, "job_runtime": None}))
    document |= {"fio version": version, "global options": {"group_reporting": "1", "iodepth": "4"}}
    (measured,) = fio_json.parse(json.dumps(document))
    assert measured.factors.get("numjobs") == numjobs
    assert ("amount" in measured.factors) is (numjobs is not None)  # io_size is per job
    document["global options"] = {"iodepth": "4"}  # without group_reporting, each job has an entry
    document["jobs"] *= 2
    (each,) = fio_json.parse(json.dumps(document))
    assert each.factors["numjobs"] == (numjobs or 2)


def test_iops_that_contradict_the_counts_are_a_doubt() -> None:
    flow = _did(4096) | {"runtime": 1000}
    (right,) = fio_json.parse(_jobs(_reader(read=flow)))
    assert CONTRADICTION not in right.other
    (wrong,) = fio_json.parse(_jobs(_reader(read=flow | {"iops": 244_000.0})))
    assert wrong.iops == 1000
    assert wrong.other[CONTRADICTION]


def test_a_negative_cpu_share_is_left_out() -> None:
    (measured,) = fio_json.parse(_job(usr_cpu=-14.5, sys_cpu=3.0))
    assert "usr_cpu_percent" not in measured.metrics
    assert measured.metrics["sys_cpu_percent"] == 4 * 3.0


def test_reads_that_verify_writes_are_no_sign_of_merged_jobs() -> None:
    entry = _writer(**{"job options": {"rw": "randwrite", "verify": "crc32c"}, "read": _did(4096)})
    assert all(one.factors["pattern"] == "randwrite" for one in fio_json.parse(_jobs(entry)))


def test_cpu_per_io_is_the_time_of_all_processes_over_all_ios() -> None:
    """fio's shares are of the sum of the runtimes of its processes."""
    found = parsed("fio-json/3.33-each-job.json")
    jobs = _document("3.33-each-job.json")["jobs"]
    cpu_ms = sum((job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] for job in jobs)
    ios = sum(job[way]["total_ios"] for job in jobs for way in ("read", "write"))
    assert ios > 0
    for measured in found:
        assert measured.metrics["cpu_ns_per_io"] == pytest.approx(cpu_ms * 1e6 / ios)


@pytest.mark.parametrize(
    ("options", "common", "expected"),
    [
        ({"numjobs": "4", "group_reporting": ""}, {}, 4 * 0.3 * 1e9 / 600),  # 30 % of 4 s
        ({}, {"numjobs": "4", "group_reporting": "1"}, 4 * 0.3 * 1e9 / 600),
        ({"numjobs": "4"}, {}, 0.3 * 1e9 / 600),  # an entry for each job
        ({}, {}, None),  # unknown whether the entry is of one process
    ],
)
def test_without_runtimes_of_processes_cpu_per_io_needs_their_number(
    options: dict[str, str], common: dict[str, str], expected: float | None
) -> None:
    flows = {way: {"io_bytes": 4, "iops": 300, "runtime": 1000, "total_ios": 300} for way in ("read", "write")}
    job = {"jobname": "a", "job options": options, "usr_cpu": 10, "sys_cpu": 20, **flows}
    document = {"fio version": "fio-2.21", "global options": common, "jobs": [job]}
    for measured in fio_json.parse(json.dumps(document)):
        assert measured.metrics.get("cpu_ns_per_io") == (expected if expected is None else pytest.approx(expected))
