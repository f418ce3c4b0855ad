"""Commands of fio, as people paste them."""

import pytest

from webapp.plans.jobfile.lines import JobFileError
from webapp.plans.jobfile.reader import read_job_file

COMMAND = "fio --direct=1 --size=1m --name=a --rw=randread --bs=8k --name=b --rw=write"


def test_options_before_the_first_name_are_for_all_jobs() -> None:
    (part,) = read_job_file(COMMAND).parts
    assert part.name == "a + b"
    assert part.factors["direct"] == "on"
    assert {stream.name: stream.factors["pattern"] for stream in part.streams} == {"a": "randread", "b": "write"}
    assert "block_size" not in part.streams[1].factors  # a job does not have the options of the one before


@pytest.mark.parametrize(
    "text",
    [
        "fio -direct=1 -size=1m -name=a -rw=randread -bs 8k --name=b -rw=write",
        "$ sudo /usr/bin/fio --direct=1 --size=1m \\\n  --name=a --rw=randread --bs=8k \\\n --name=b --rw=write > out",
        "# fio '--direct=1' --size=1m --name=a --rw=randread --bs=8k --name=b --rw=write | tee log",
        "fio --name=global --direct=1 --size=1m --name=a --rw=randread --bs=8k --name=b --rw=write 2>&1",
    ],
)
def test_ways_to_write_it(text: str) -> None:
    assert read_job_file(text).parts == read_job_file(COMMAND).parts


def test_commands_run_one_after_another() -> None:
    text = "fio --name=a --size=1m --group_reporting --rw=read; fio --name=b --size=1m\nfio --size=2m --name=c --name=d"
    assert [part.name for part in read_job_file(text).parts] == ["a", "b", "c + d"]


def test_output_options_are_differences() -> None:
    note = read_job_file(f"{COMMAND} --output-format=json --output out.json --eta=never").note
    assert "`output-format`, `output`, `eta` ignored" in note


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fio --rw=read", "has no `--name`"),
        ("fio --name=a job.fio", "names the job file `job.fio`"),
        ("fio --name='a", "cannot be read"),
        ("fio --name=a --size=1m; rm -rf /", "is not a call of fio"),
        ("fio --name=a --size=1m --exec_prerun=id", "it runs a program"),
        ("fio --name=a --size=$SIZE", "value of the variable `SIZE`"),
    ],
)
def test_it_says_what_cannot_be_read(text: str, words: str) -> None:
    with pytest.raises(JobFileError) as caught:
        read_job_file(text)
    assert words in caught.value.message
    assert {problem.line for problem in caught.value.problems} == {0}


def test_text_that_only_mentions_fio_is_a_job_file() -> None:
    assert read_job_file("# fio --name=x\n[a]\nsize=1m\n").parts[0].name == "a"
