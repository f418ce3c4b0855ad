import pytest

from webapp.imports.formats.fio_log import Histograms, HistogramSum, Kind, Log, log_name, series, sniff
from webapp.imports.formats.tests.examples import text
from webapp.imports.values import ImportRefused
from worker.contract.items import Direction

READ, WRITE = Direction.READ, Direction.WRITE


def histograms(texts: list[str]) -> Histograms:
    found = HistogramSum()
    for one in texts:
        found.add(one)
    return found.histograms()


def _log(kind: Kind, job: int, *rows: str) -> Log:
    return Log(kind, job, "\n".join(rows) + "\n")


def test_names() -> None:
    name = log_name("host/drive/randread-iodepth-32-numjobs-4_clat.3.log")
    assert name is not None
    assert (name.prefix, name.kind, name.job) == ("randread-iodepth-32-numjobs-4", Kind.COMPLETION, 3)
    assert name.trial == "host/drive/randread-iodepth-32-numjobs-4"
    joint = log_name("a_bw.log")
    assert joint is not None
    assert joint.job == 0
    histogram = log_name("a_clat_hist.2.log")
    assert histogram is not None
    assert histogram.kind is Kind.HISTOGRAM
    client = log_name("a_iops.1.log.host7")
    assert client is not None
    assert client.kind is Kind.IOPS
    assert log_name("kern.log") is None
    assert log_name("a_bw.1.txt") is None


def test_rates_are_summed_over_jobs() -> None:
    logs = [
        _log(Kind.IOPS, 1, "500, 100, 0, 0", "1000, 200, 0, 0"),
        _log(Kind.IOPS, 2, "500, 10, 0, 0", "1000, 20, 0, 0"),
        _log(Kind.BANDWIDTH, 1, "500, 400, 0, 0", "1000, 800, 0, 0"),
    ]
    first, second = series(logs)[READ]
    assert (first.offset_ms, first.length_ms, first.iops) == (500, 500, 110)
    assert (second.offset_ms, second.iops, second.bytes_per_s) == (1000, 220, 800 * 1024)
    assert first.latency_mean_ns is None


def test_latencies_are_weighted_with_the_iops_of_the_job() -> None:
    logs = [
        _log(Kind.IOPS, 1, "500, 300, 1, 0"),
        _log(Kind.IOPS, 2, "500, 100, 1, 0"),
        _log(Kind.LATENCY, 1, "500, 1000, 1, 0"),
        _log(Kind.LATENCY, 2, "500, 5000, 1, 0"),
        _log(Kind.COMPLETION, 1, "500, 7, 1, 0"),
    ]
    (point,) = series(logs)[WRITE]
    assert point.latency_mean_ns == pytest.approx(2000)
    (in_us,) = series(logs, latency_unit_ns=1000)[WRITE]
    assert in_us.latency_mean_ns == pytest.approx(2_000_000)


def test_jobs_that_log_at_other_moments_keep_their_totals() -> None:
    steady = [f"{t}, 1000, 0, 0" for t in range(250, 10_001, 250)]
    shifted = [f"{t + 37}, 1000, 0, 0" for t in range(250, 9_900, 250)]
    points = series([_log(Kind.IOPS, 1, *steady), _log(Kind.IOPS, 2, *shifted)])[READ]
    assert len(points) == 39
    assert {round(point.iops or 0) for point in points} == {2000}


def test_a_last_row_that_fio_did_not_write_is_no_pause() -> None:
    """fio 3.33 with log_avg_msec=200 and 4 s: the last row of IOPS is at 3.8 s, that of latencies at 4 s."""
    rates = [f"{t}, 1000, 0, 0" for t in range(200, 3801, 200)]
    latencies = [f"{t}, 48000, 0, 0" for t in range(200, 4001, 200)]
    points = series([_log(Kind.IOPS, 1, *rates), _log(Kind.LATENCY, 1, *latencies)])[READ]
    assert points[-1].offset_ms == 3800
    assert {round(point.iops or 0) for point in points} == {1000}


def test_a_pause_without_rows_is_a_pause() -> None:
    rows = [f"{t}, 1000, 0, 0" for t in (100, 200, 300, 900, 1000)]
    points = series([_log(Kind.IOPS, 1, *rows)])[READ]
    assert [round(point.iops or 0) for point in points] == [1000, 1000, 1000, 0, 0, 0, 0, 0, 1000, 1000]


def test_rows_beside_empty_intervals_count_for_their_own_interval() -> None:
    """fio 3.33 with thinktime and log_avg_msec=250: 50 I/Os in each interval that has a row."""
    times = (250, 750, 1002, 1503, 1753, 2255, 2506, 3006)
    points = series([_log(Kind.IOPS, 1, *(f"{time}, 200, 0, 0" for time in times))])[READ]
    assert sum((point.iops or 0) * point.length_ms / 1000 for point in points) == pytest.approx(400, rel=0.01)
    assert (points[1].iops or 0) < 1


def test_rows_of_single_ios_are_counted() -> None:
    rows = ["10, 20640, 0, 4096, 0, 0", "20, 10000, 0, 4096, 4096, 0", "1500, 5000, 1, 512, 0, 0"]
    found = series([_log(Kind.LATENCY, 1, *rows), _log(Kind.IOPS, 1, *rows), _log(Kind.BANDWIDTH, 1, *rows)])
    (read,) = found[READ]
    assert read.latency_mean_ns == 15320
    assert (read.iops or 0) * read.length_ms / 1000 == pytest.approx(2)
    assert (read.bytes_per_s or 0) * read.length_ms / 1000 == pytest.approx(8192)
    assert found[WRITE][-1].offset_ms == 1500


def test_newer_columns() -> None:
    with_priority = _log(Kind.BANDWIDTH, 1, "250, 100, 0, 0, 0x0002", "500, 200, 0, 0, 0x0002")
    assert [point.bytes_per_s for point in series([with_priority])[READ]] == [102400, 204800]
    with_largest = _log(Kind.LATENCY, 1, "250, 100, 900, 1, 0, 0", "500, 200, 800, 1, 0, 0")
    assert [point.latency_mean_ns for point in series([with_largest])[WRITE]] == [100, 200]


def test_published_logs() -> None:
    names = [f"randwrite-iodepth-32-numjobs-4_{kind}.{job}.log" for kind in ("bw", "iops", "lat") for job in (1, 2)]
    logs = [Log(name.kind, name.job, text(f"fio-log/{one}")) for one in names if (name := log_name(one))]
    assert len(logs) == 6
    ((direction, points),) = series(logs).items()
    assert direction is WRITE
    assert points[0].length_ms == 250
    first_rows = [log.text.split("\n")[1].split(",") for log in logs if log.kind is Kind.IOPS]
    assert points[1].iops == pytest.approx(sum(int(row[1]) for row in first_rows), rel=0.02)


def _histogram_row(time: int, direction: int, **counts: int) -> str:
    bins = [0] * 1856
    for name, count in counts.items():
        bins[int(name[1:])] = count
    return f"{time}, {direction}, 4096, " + ", ".join(map(str, bins))


def test_histograms_are_added() -> None:
    texts = [
        _histogram_row(500, 0, b100=3, b200=1) + "\n" + _histogram_row(1000, 1, b100=5) + "\n",
        _histogram_row(500, 0, b200=4) + "\n",
    ]
    found = histograms(texts).of
    assert found[READ].counts == (3, 5)
    assert found[READ].latency_ns == (100, 290)  # bin 200 is from 288 to 291 ns
    assert found[WRITE].total == 5


def test_coarse_histograms() -> None:
    row = "500, 0, 4096, " + ", ".join(["0"] * 100 + ["7"] + ["0"] * 827)
    found = histograms([row])
    assert found.of[READ].counts == (7,)
    assert found.of[READ].latency_ns == (292,)  # bins 200 and 201
    assert found.off_percent == pytest.approx(100 * 2 / 128)


def test_histograms_of_fio_2_are_in_us_by_their_number_of_bins() -> None:
    row = "500, 0, 4096, " + ", ".join(["0"] * 200 + ["7"] + ["0"] * 1015)
    assert histograms([row]).of[READ].latency_ns == (290_000,)


@pytest.mark.parametrize(
    ("bins", "place"),
    [(1856 >> 3, 25), (1856 >> 6, 20), (1216 >> 2, 3), (1216 >> 6, 5)],  # 1216 >> 2, 3: 12 to 15 µs
)
def test_bins_too_wide_for_percentiles_are_refused(bins: int, place: int) -> None:
    row = "500, 0, 4096, " + ", ".join("7" if n == place else "0" for n in range(bins))
    assert sniff(row)
    with pytest.raises(ImportRefused, match="log_hist_coarseness to a smaller number"):
        histograms([row])


def test_counters_that_were_reset_are_refused() -> None:
    with pytest.raises(ImportRefused, match="impossible number of I/Os"):
        histograms([_histogram_row(500, 0, b100=2**62)])


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        ("", "empty"),
        ("250, 1, 0, 0\n500, 1, 0", "differ in length"),
        ("250, 1, 0, 0\n500, 1, 0, 0, 7, 7\n", "differ in length"),
        ("250, nan, 0, 0\n", "not a whole number"),
        ("250, -5, 0, 0\n", "impossible"),
        ("99999999999999999999, 5, 0, 0\n", "impossible|not a whole"),
        ("250, 5, 7, 0\n", "direction"),
        ("250, 5\n", "columns"),
        ("250, ٣, 0, 0\n", "not digits"),
        ("250, 99999999999999, 0, 0\n", "not possible"),
        ("1, 5, 0, 0\n2, 5, 0, 0\n3, 5, 0, 0\n4, 5, 0, 0\n9999999999, 5, 0, 0\n", "intervals"),
    ],
)
def test_damaged_logs_are_refused(damaged: str, reason: str) -> None:
    with pytest.raises(ImportRefused, match=reason):
        series([Log(Kind.IOPS, 1, damaged)])


def test_recognition() -> None:
    assert sniff("250, 10872, 0, 0\n500, 1, 0, 0\n")
    assert sniff("250, 16528, 0, 0, 0x0002\n")
    assert sniff("250, 16528, 0, 0, 0x0002, 1795660236452123456\n")  # log_issue_time since 1970
    assert sniff(_histogram_row(1, 0, b1=1))
    assert not sniff("a, b, c\n1, 2, 3\n")
