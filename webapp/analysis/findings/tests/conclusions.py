"""What the authors of the shipped references concluded from these numbers, read again in their publications, and what
the page of each import says about it without being asked.
"""

from dataclasses import dataclass

from webapp.analysis.answer import FindingKind

K = FindingKind


@dataclass(frozen=True)
class Found:
    """One finding. `words`: names of things and, for a ratio of a part, its text. None for numbers that are not
    checked."""

    kind: FindingKind
    words: tuple[str, ...]
    factor: float | None = None  # the size of the finding as a ratio, above 1
    value: float | None = None
    level: str | None = None


@dataclass(frozen=True)
class Stated:
    """A sentence with a ratio of values, without a claim."""

    words: tuple[str, ...]


@dataclass(frozen=True)
class Missing:
    """Why the page does not say it."""

    why: str


@dataclass(frozen=True)
class Conclusion:
    reference: str  # the folder
    author: str  # the conclusion in our words
    page: Found | Stated | Missing


def _of(reference: str, *conclusions: tuple[str, Found | Stated | Missing]) -> list[Conclusion]:
    return [Conclusion(reference, author, page) for author, page in conclusions]


CONCLUSIONS = [
    *_of(
        "dell-pe2970-perc5i",
        ("read-ahead of 8192 sectors makes reads about three times as fast; writes stay", Found(
            K.EFFECT, ("Tuned block device layer", "read ×2.88", "write −5.0 %"), 2.88)),
        ("throughput is lower with more threads", Found(K.TREND, ("read", "more load"), 2.29, level="10")),
        ("with default settings it writes faster than the reference server, and reads slower", Found(
            K.RATIOS, ("Default settings", "write +10 %", "read −33 %"))),
        ("after tuning it reads faster than the reference server", Found(
            K.EFFECT, ("Tuned block device layer", "Supermicro", "read +71 %"))),
    ),
    *_of(
        "eva4400-fata",
        ("reads fall from 28 to 15 MB/s while drives are added", Found(K.EFFECT, ("restripe", "Read"), 1.87)),
        ("random reads are very slow beside sequential ones", Found(K.DIRECTION, ("read", "against randread",), 14.0)),
        ("writes are faster than reads", Found(K.RATIOS, ("write", "against read",), 1.52)),
        ("a file of 512 MB is served from the host's cache", Found(K.EFFECT, ("randread", "100 GiB"), 439)),
        ("two writers on two disk groups have 174 MB/s together, one has 130", Missing(
            "jobs and streams differ together, and the disk groups of the single writer are not stated: the ratio of "
            "the two values has no single cause")),
        ("two readers on two disk groups have 133 MB/s together, one has 113", Missing(
            "the number of readers and the disk groups of the single reader are not stated: nothing that both state "
            "tells them apart")),
    ),
    *_of(
        "fusionio-320gb-mlc",
        ("throughput drops from 500 MiB/s at the peak to 110 to 120 at full capacity", Found(
            K.EFFECT, ("Peak", "Full capacity"), 4.35)),
    ),
    *_of(
        "fusionio-duo-320gb",
        ("write throughput depends strongly on free space", Found(K.TREND, ("20 %", "100 %"), 11.1, 104e6)),
        ("from 100 to 200 GiB it falls by a factor of 2.6", Found(K.TREND, ("100 GiB", "200 GiB"), 2.63, 372e6)),
        ("tachIOn is 0.9 times as fast at 20 % full, and 4.2 times at 100 %", Found(
            K.INTERACTION, ("fill level", "+11 %", "×0.24"))),
    ),
    *_of(
        "intel-320-random-read",
        ("one Intel 320 gains nothing beyond 16 threads", Found(
            K.SATURATION, ("single Intel 320",), value=183e6, level="16")),
        ("one SSD has 5 to 8 times the throughput of RAID 10", Found(
            K.EFFECT, ("single Intel 320", "RAID 10", "×5.31 to ×8.07"), 7.13)),
        ("two striped SSDs have 8 to 11 times the throughput of RAID 10", Found(
            K.EFFECT, ("RAID 0 of 2", "RAID 10", "×8.31 to ×10.7"), 9.54)),
        ("one SSD responds 10 to 14 times as fast as RAID 10", Found(
            K.EFFECT, ("single Intel 320", "RAID 10", "p95 latency"), 12.3)),
        ("two striped SSDs respond 10 to 22 times as fast as RAID 10", Found(
            K.EFFECT, ("RAID 0 of 2", "RAID 10", "p95 latency"), 15.2)),
        ("striping helps, with more threads", Found(K.INTERACTION, ("RAID 0 of 2", "1 job", "×0.50 at 32 jobs"))),
    ),
    *_of(
        "intel-320-random-write",
        ("the more space is used, the lower the throughput: 100 MiB/s at 10 GiB, 15 at 140 GiB", Found(
            K.TREND, ("Intel 320",), 6.67, 960)),
        ("with a partition of 120 GB, the second pass is faster than on the whole SSD", Stated(
            ("just after 50 GiB", "20 % lower"))),
        ("a nearly full SSD is no faster than RAID 10 of hard disks", Found(
            K.RATIOS, ("single Intel 320", "whose size is not stated", "+30 % at 100 GiB", "−35 % at 140 GiB"))),
    ),
    *_of(
        "lsi9266-vertex4-bonnie",
        ("ext4 instead of XFS improves nothing", Found(
            K.RATIOS, ("ext4", "against XFS", "read −0.9 %", "write −21 %"))),
        ("both backplanes are equal", Found(K.NO_EFFECT, ("second", "within 1.2 % of first"))),
        ("one array over two backplanes is no improvement", Missing(
            "it is one of the many variants near the median, which the page counts and does not name")),
        ("LVM over two arrays reads 3 GB/s", Found(K.STANDOUT, ("read", "RAID-00"), 1.71)),
        ("two arrays at once, each on its backplane, write 2.8 GB/s together", Found(
            K.STANDOUT, ("write", "zeitgleicher Benchmark, 2 RAID-0, kB/s"), 1.83, 2.87e9)),
        ("two arrays at once on one backplane have no more than one array of all drives", Missing(
            "no table has one array of these drives alone with the same layout")),
        ("with kernel 3.6 no scheduler is really better", Found(
            K.RATIOS, ("noop", "against cfq", "read +8.5 %", "write −4.1 %"))),
        ("interrupts on the second CPU make no difference", Stated(("IRQ via zweiter CPU", "4.7 % higher"))),
        ("eight drives write slower than four", Found(K.RATIOS, ("8 SSDs", "4 SSDs", "write −6.0 %"))),
        ("deadline is slower than cfq and noop, above all in writes", Found(
            K.EFFECT, ("deadline", "against cfq", "write −36 %"))),
        ("write through reads faster and writes slower than write back", Found(
            K.RATIOS, ("read +31 %", "write −8.8 %", "write cache"))),
        ("without read-ahead the read rate collapses", Found(K.STANDOUT, ("read", "Kein Read Ahead"), 3.6)),
        ("cfq's options have no noticeable effect", Found(K.NO_EFFECT, ("slice_idle=0", "within 1.9 %"))),
        ("the default strip size of 256 kB is fine", Missing(
            "256 kB is highest in writes by 0.5 %, 1 MB in reads, from one or two values: no size is certainly best")),
        ("almost all tuning brings no clear improvement", Found(K.NO_EFFECT, ("write", "26 of 38 variants"))),
    ),
    *_of(
        "lsi9266-vertex4-dd",
        ("one array reads 1.2 GB/s, two at once at most 1.8", Found(
            K.RATIOS, ("2 × RAID 0 of 4", "whose amount is not stated", "+46 %", "+56 %"), 1.56)),
        ("one array writes 1.3 GB/s, two at once 1.8", Stated(("2 at once reach ×1.34", "67 % of linear"))),
        ("arrays of two drives scale up to two, then the sum stays at 1.8 GB/s", Found(
            K.CAPPED, ("100 % of linear", "61 % of linear"), value=1.78e9, level="3")),
        ("writes to raw devices are merged by the operating system: separate files have half", Found(
            K.EFFECT, ("separate files", "raw device", "−48 %"))),
    ),
    *_of(
        "lsi9266-vertex4-sdb",
        ("write back writes 1.85 GB/s, write through 1.71", Found(
            K.RATIOS, ("write back", "against write through", "+8.2 %"))),
        ("3.2 GB/s as long as the data fit in the controller's cache, then 1.8", Found(
            K.CLIFF, ("write", "256 MiB", "10 GiB"), 1.71, level="10 GiB")),
        ("the file system is no problem", Missing(
            "the table without a file system has one value for two sizes, and the other one does not state the cache")),
        ("two threads reach what PCIe 2.0 x8 leaves after its overhead", Missing(
            "the page does not know the practical rate of a link, and a cause is not stated from one value")),
    ),
    *_of(
        "m4n-database",
        ("nightly maintenance is 11 times as fast", Found(K.EFFECT, ("old database server",), 11.4)),
        ("queries are 6 times as fast, the whole application twice", Found(
            K.EFFECT, ("all queries", "whole application"), 3.0)),
    ),
    *_of(
        "mtron-raid0-12",
        ("all random reads stop at 60k to 65k IOPS", Found(
            K.SATURATION, ("randread", "Jobs 10", "Jobs 40"), value=62_600, level="16 KiB")),
        ("reads stop at about 1750 MB/s", Found(K.SATURATION, ("randread",), value=1.82e9, level="64 KiB")),
        ("40 threads bring hardly more than 10", Found(K.NOTHING_MORE, ("10 jobs",))),
        ("one thread cannot issue enough requests", Stated(("randread", "Jobs 10", "×1.78 the IOPS of Jobs 1"))),
        ("the value of one thread at 512 B is out of line", Found(
            K.OUTLIER, ("randread", "Jobs 1"), value=11_300, level="512 B")),
        ("12 drives read no faster than 4: the limit is elsewhere", Found(
            K.EFFECT, ("RAID 5", "randread within 5 % at 40 of 42 points"))),
    ),
    *_of(
        "mtron-raid5-4",
        ("a gap: 24 IOPS at 512 B", Found(K.OUTLIER, ("randread", "Jobs 1"), value=24, level="512 B")),
        ("a gap: 28k IOPS at 512 B with 10 threads", Found(
            K.OUTLIER, ("randread", "Jobs 10"), value=28_100, level="512 B")),
        ("write performance drops at 64 kB", Found(K.CLIFF, ("randwrite", "all 3 curves"), level="64 KiB")),
        ("more drives improve writes", Found(K.EFFECT, ("12 × Mtron", "randwrite ×0.01 to ×0.48"))),
    ),
    *_of(
        "mysql-tachion",
        ("Percona Server has 1.23 to 1.4 times the transactions of MySQL", Stated(
            ("Percona Server", "+24 % to +40 %"))),
    ),
    *_of(
        "oes-nine-clients",
        ("writes are consistently faster than reads", Found(K.DIRECTION, ("All 3 tests of writes",), 1.58)),
    ),
    *_of(
        "oes-working-sets",
        ("reads collapse if the working set leaves the cache; writes do not", Found(
            K.EFFECT, ("Stride read ×0.07", "randread ×0.10", "Initial write −3.5 %"), level="40")),
    ),
    *_of(
        "supermicro-2026tt-power",
        ("each blade takes about 150 W", Found(K.LINEAR, ("blade",), value=152)),
    ),
    *_of(
        "supermicro-arc1260",
        ("throughput of reads is lower with more threads", Found(K.TREND, ("read", "more load"), 1.49, level="10")),
    ),
    *_of(
        "tachion-400gb",
        ("the fuller the card, the slower, and never below 400 MB/s", Found(K.TREND, ("20 %",), 2.37, 437e6)),
        ("it is 2.3 times as slow when full as at a third", Found(K.TREND, ("130",), 2.30, 438e6)),
        ("it is slower than FusionIO Duo when nearly empty, and 4 times as fast when full", Found(
            K.INTERACTION, ("fill level", "−9.6 %", "×4.21"))),
    ),
    *_of(
        "x25-m-lvm-stripe",
        ("10 % of writes change random performance a lot", Found(K.MIX_COST, ("randrw", "42 %"), 1.72)),
        ("xdd and bm-flash report different IOPS", Found(K.TOOL_EFFECT, ("bm-flash", "xdd", "randread −35 %"))),
    ),
    *_of(
        "xeon-e5-2690-memory",
        ("a RAM disk is fastest with the threads spread over both CPUs", Found(
            K.EFFECT, ("4 + 0", "−37 %", "against cores of each CPU 2 + 2"), 1.58)),
        ("dd's copy of /dev/zero is near to the speed of the RAID, unlike sdb's", Missing(
            "both tools have no common test point: their buffers differ")),
    ),
]  # fmt: skip
