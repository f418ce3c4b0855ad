"""rados bench, kbench, IOR, and elbencho's console."""

import pytest

from webapp.imports.formats import elbencho_text, ior, kbench, rados
from webapp.imports.formats.tests.examples import only, parsed, text
from webapp.imports.values import ImportRefused
from worker.contract.items import Direction

READ, WRITE = Direction.READ, Direction.WRITE


def test_rados_rates_follow_from_counts_and_time() -> None:
    write, read = parsed("rados/write-and-reads.txt")
    assert (write.direction, write.ios, write.bytes, write.runtime_ms) == (WRITE, 229, 229 * 2**20, 10_251)
    assert write.bytes_per_s == pytest.approx(22.3395 * 2**20, rel=1e-5)  # as printed
    assert write.factors == {"pattern": "write", "block_size": 2**20, "iodepth": 16}
    assert (write.latency.mean_ns, write.latency.max_ns) == (709_479_000, 1_527_380_000)
    assert (read.name, read.factors["pattern"]) == ("seq", "read")
    assert read.bytes_per_s == pytest.approx(111.441 * 2**20, rel=1e-5)


def test_rados_before_it_printed_iops() -> None:
    write, read = parsed("rados/older.txt")
    assert (write.latency.mean_ns, read.latency.max_ns) == (413_596_000, 306_420_000)
    assert read.bytes_per_s == pytest.approx(1289.294 * 2**20, rel=1e-5)


def test_a_read_of_rados_without_its_command_has_no_pattern_and_no_depth() -> None:
    (read,) = rados.parse("Total time run: 4.45077\nTotal reads made: 124\nRead size: 4194304\n")
    assert read.factors == {"block_size": 2**22}


def test_objects_in_flight_and_object_size_of_rados() -> None:
    pasted = (
        "$ rados -p rbd bench -b 4096 300 write -t 32 -o 65536 --no-cleanup\nTotal time run:         300.015640\n"
        "Total writes made:      614977  # operations\nWrite size:             4096\nObject size:            65536\n"
    )
    (write,) = rados.parse(pasted)
    assert write.factors["iodepth"] == 32
    assert write.other == {"object size": "65536 bytes"}


@pytest.mark.parametrize("line", ["Total writes made", "Write size"])
def test_a_result_of_rados_without_a_figure_is_refused(line: str) -> None:
    whole = text("rados/write-and-reads.txt").split("\n\n")[0]
    cut = "\n".join(each for each in whole.split("\n") if not each.startswith(line))
    with pytest.raises(ImportRefused, match=line):
        rados.parse(cut)


def test_the_summary_of_kbench() -> None:
    cells = parsed("kbench/summary.txt")
    assert len(cells) == 12
    assert [cell.iops for cell in cells if cell.name == "rand-read-iops"] == [204_584]
    bandwidth = only(cells, WRITE, pattern="write", block_size=128 * 1024)
    assert (bandwidth.bytes_per_s, bandwidth.assumed) == (5_738_163 * 1024, {"block_size"})
    latency = [cell for cell in cells if cell.name == "seq-read-lat"]
    assert [(cell.latency.kind, cell.latency.mean_ns, cell.iops) for cell in latency] == [("lat", 25_266, None)]
    assert {cell.factors["size"] for cell in cells} == {30 * 2**30}


def test_a_comparison_of_kbench_has_two_volumes() -> None:
    cells = parsed("kbench/comparison.txt")
    assert len(cells) == 24
    first, second = (
        [cell for cell in cells if cell.other["volume"] == volume] for volume in ("850-pro-raw", "850-pro-ext4")
    )
    assert [cell.iops for cell in first if cell.name == "rand-write-iops"] == [89_565]
    assert [cell.latency.mean_ns for cell in second if cell.name == "rand-read-lat"] == [114_331]
    assert {cell.metrics["cpu_idle_percent"] for cell in second} == {66, 98, 73}


def test_a_summary_of_kbench_without_rows_is_refused() -> None:
    with pytest.raises(ImportRefused, match="cut off"):
        kbench.parse(text("kbench/summary.txt").split("        Random")[0])


def test_the_table_of_ior_3_0_and_its_parameters() -> None:
    (read,) = parsed("ior/3.0.txt")  # the row of its summary is no second result
    assert (read.tool_version, read.direction, read.runtime_ms) == ("3.0.1", READ, 6830)
    assert read.bytes_per_s == pytest.approx(468.59 * 2**20)
    assert read.factors == {"pattern": "read", "numjobs": 16}
    assert read.other["block size"] == str(20 * 2**20)  # more than a block of ours may have
    assert read.other["access"] == "file-per-process"


def test_iops_of_ior_are_those_of_transfers_alone() -> None:
    write, read = parsed("ior/3.3.txt")
    assert (write.iops, read.iops) == (None, None)
    assert write.metrics == {"transfer_iops": 519_844, "transfer_latency_s": 0.030358}
    assert (read.factors["numjobs"], read.factors["block_size"], read.other["segments"]) == (4, 4096, "4096")


def test_repeated_iterations_of_ior_and_direct_io() -> None:
    (row,) = [line for line in text("ior/3.3.txt").split("\n") if line.startswith("write")]
    twice = text("ior/3.3.txt").replace("-C -F -e", "-C -F -e -O useO_DIRECT=1").replace(row, f"{row}\n{row}")
    writes = [each for each in ior.parse(twice) if each.direction is WRITE]
    assert [each.repeat for each in writes] == [1, 2]
    assert writes[0].factors["direct"] is True


def test_a_row_of_ior_that_is_cut_off_is_refused() -> None:
    with pytest.raises(ImportRefused, match="cut off"):
        ior.parse(text("ior/3.3.txt").split("    504065")[0] + "\n")


def test_the_console_of_elbencho_with_its_command() -> None:
    (write,) = parsed("elbencho-text/write.txt")
    assert (write.direction, write.iops, write.bytes_per_s, write.runtime_ms) == (
        WRITE, 33_352, 33_352 * 2**20, 125_755,
    )  # fmt: skip
    assert write.factors == {
        "pattern": "write", "block_size": 2**20, "size": 16 * 2**30, "numjobs": 96, "direct": True,
    }  # fmt: skip
    assert write.other == {"hosts": "192.168.0.[1,3,5]"}


def test_phases_without_data_and_options_that_are_cut_off() -> None:
    log = (
        'COMMAND LINE: "/usr/local/bin/elbencho" "--write" "--threads" "4" "--block" "128k" ...\n\n'
        "OPERATION   RESULT TYPE         FIRST DONE   LAST DONE\n"
        "=========== ================    ==========   =========\n"
        "MKDIRS      Elapsed time     :        26ms        26ms\n"
        "            Dirs/s           :          38          38\n---\n"
        "WRITE       Elapsed time     :     30.140s     30.196s\n"
        "            IOPS             :         291         290\n"
        "            Throughput MiB/s :          36          36\n"
        "            IO latency       : [ min=108us avg=469us max=14.5ms ]\n---\n"
    )
    (write,) = elbencho_text.parse(log)
    assert (write.factors, write.iops, write.runtime_ms) == ({}, 290, 30_196)
    assert (write.latency.min_ns, write.latency.mean_ns, write.latency.max_ns) == (108_000, 469_000, 14_500_000)


def test_the_console_of_elbencho_1_with_small_files() -> None:
    log = (
        "OPERATION RESULT TYPE        FIRST DONE  LAST DONE\n"
        "========= ================   ==========  =========\n"
        "WRITE     Elapsed ms       :      18618      19506\n"
        "          Files/s          :      53679      53757\n"
        "          Throughput MiB/s :        104        105\n"
        "          Total files      :     999438    1048600\n---\n"
        "RMFILES   Elapsed ms       :      12874      13551\n"
        "          Files/s          :      77300      77381\n---\n"
        "WRITE     Elapsed ms       :      17522      18346\n"
        "          Throughput MiB/s :        111        111\n---\n"
    )
    first, second = elbencho_text.parse(log)
    assert (first.iops, first.bytes_per_s, first.runtime_ms) == (None, 105 * 2**20, 19_506)
    assert first.metrics == {"files_per_s": 53_757}
    assert (second.bytes_per_s, second.runtime_ms, second.metrics) == (111 * 2**20, 18_346, {})
    assert (first.repeat, second.repeat) == (1, 1), "without the command, they may be different tests"


def test_a_command_of_elbencho_is_that_of_one_table() -> None:
    command, table = text("elbencho-text/write.txt").replace("-b 1m -s 16g", "-b 16m -s 32k").split("\n", 1)
    first, second = elbencho_text.parse(f"{command}\n{table}Another script\n{table}")
    assert (first.factors["block_size"], first.factors["size"]) == (32_768, 32_768), "a block is at most a file"
    assert (second.factors, second.repeat) == ({}, 1)


def test_a_note_says_that_mixed_phases_beside_others_are_not_read() -> None:
    table = text("elbencho-text/write.txt")
    mixed = "RWMIX70     Elapsed time     :     30.140s     30.196s\n            IOPS             :   291   290\n"
    (write,) = elbencho_text.parse(table + mixed)
    assert (write.name, len(write.notes)) == ("WRITE", 1)
    assert elbencho_text.parse(table)[0].notes == ()


def test_mixed_phases_of_the_console_are_refused_with_what_to_do() -> None:
    table = text("elbencho-text/write.txt").replace("WRITE       ", "RWMIX70     ").replace("IOPS    ", "IOPS X  ")
    with pytest.raises(ImportRefused, match="--csvfile"):
        elbencho_text.parse(table)


def test_a_table_of_ior_without_its_transfer_size_is_refused() -> None:
    with pytest.raises(ImportRefused):
        ior.parse(text("ior/3.3.txt").replace("xfer(KiB)", ""))
