"""The comparison of job files with their plans, on files for each kind of job."""

import re
from pathlib import Path

import numpy as np
import pytest

from dev import job_file_proof as proof
from webapp.plans.jobfile.jobs import texts

FILES = {
    "two.fio": "[global]\nioengine=libaio\ndirect=1\nsize=1g\nruntime=60\ntime_based\n[data]\nrw=randread\niodepth=16\n"
    "bs=8k\n[log]\nrw=write\nbs=16k\n",
    "shared.fio": "[reads]\nfilename=/dev/sdx\nrw=read\nbs=64k\nnumjobs=3\nsize=32m\n[writes]\nstonewall\n"
    "filename=/dev/sdx\nrw=randwrite\nbs=4k,8k\noffset=16m\nsize=8m\n",
    "own.fio": "[mix]\nrw=randrw\nrwmixread=80\nbssplit=4k/70:32k/30\nnumjobs=2\nnrfiles=2\nsize=16m\n",
    "broken.fio": "[a]\nioengine=null\nsize=1m\n",
    "wrong.fio": "[a]\nrw=read\nverify=md5\nsize=1m\nverify_fatal=1\nfilename=x\n",
}


def test_files_and_their_plans_do_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    assert proof.main([str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    states = {line.split()[1].rstrip(":"): line.split()[0] for line in lines if ".fio" in line}
    assert states == {
        **dict.fromkeys(("two.fio", "shared.fio", "own.fio"), "agrees"), "broken.fio": "refused",
        "wrong.fio": "skipped",
    }  # fmt: skip
    assert lines[-1] == "5 jobs agree."


def test_it_finds_a_plan_that_does_something_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.fio").write_text("[a]\nrw=randread\nbs=4k\nsize=32m\n")
    monkeypatch.setattr("webapp.plans.jobfile.reader.texts", lambda job: texts(job) | {"block_size": "8k"})
    (found,) = proof.verdicts(tmp_path)
    assert found.state == "differs"
    assert "shares of the block sizes differ by 100%" in found.words


@pytest.mark.parametrize(("option", "value", "words"), [("rw", "randread", "continued"), ("iodepth", "2", "depth")])
def test_it_finds_another_pattern_and_another_depth(
    option: str, value: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "[a]\nioengine=libaio\ndirect=1\nrw=read\nbs=64k\niodepth=8\nsize=32m\n"
    (tmp_path / "a.fio").write_text(text)
    original = proof.original
    monkeypatch.setattr(
        proof, "original", lambda *given: re.sub(f"(?m)^{option}=.*", f"{option}={value}", original(*given))
    )
    (verdict,) = proof.verdicts(tmp_path)
    assert verdict.state == "differs"
    assert words in verdict.words


def test_ios_in_flight_may_end_in_any_order() -> None:
    blocks = np.arange(4096).reshape(-1, 8)[:, ::-1].ravel()
    rows = np.stack([np.zeros(4096), np.full(4096, 4096), blocks * 4096], axis=1).astype(np.int64)
    assert proof.Logged(rows).continued(1) == 0
    assert proof.Logged(rows).continued(8) == 7 / 8  # the first of each eight has no neighbour yet


def test_distributions_are_compared_beyond_chance() -> None:
    draws = np.random.default_rng(1).integers(0, proof.BUCKETS, (2, 4096))
    one, other, uneven = proof._shares(draws[0]), proof._shares(draws[1]), proof._shares(draws[1] // 4)
    assert proof._gap(one, other, 4096) == 0
    assert proof._gap(one, uneven, 4096) > 0.1
