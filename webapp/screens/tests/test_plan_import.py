"""Plans from files: read into the editor, or refused in words at the line."""

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from webapp.plans.document import MAX_BYTES
from webapp.plans.models import Plan, PlanVersion
from webapp.plans.services import BUILTIN

JOB = "[global]\nioengine=io_uring\nsize=64m\nruntime=3\ntime_based\n[quick]\nrw=randread\nbs=4k\nnorandommap\n"


def sent(client: Client, **data: object) -> str:
    return client.post("/plans/import/", {"kind": "job"} | data, follow=True).content.decode()


def test_a_job_file_opens_in_the_editor_and_nothing_is_saved(operator: Client) -> None:
    page = sent(operator, text=JOB.replace("\n", "\r\n"), title="Old job")
    assert "Read from the fio job file: 1 part." in page
    assert 'value="Old job"' in page
    assert 'name="p0.name" maxlength="100" value="quick"' in page
    assert "data-unsaved" in page
    assert not Plan.objects.exists()


def test_an_uploaded_file_wins_over_what_is_pasted(operator: Client) -> None:
    file = SimpleUploadedFile("x.fio", b"\xef\xbb\xbf" + JOB.replace("quick", "uploaded").encode())
    assert 'value="uploaded"' in sent(operator, text=JOB, file=file)


def test_refused_options_are_shown_at_their_line(operator: Client) -> None:
    page = sent(operator, text=JOB + "exec_prerun=rm -rf /\nbs=${X}\n")
    assert "Problems by line" in page
    told = r'<li class="is-refused"><code>{}</code><div class="field-problem">Line {}: <code>{}</code>'
    assert re.search(told.format("exec_prerun=rm -rf /", 10, "exec_prerun"), page)
    assert re.search(told.format(r"bs=\$\{X\}", 11, "bs"), page)
    assert page.count('class="is-refused"') == 2
    assert "ioengine=io_uring\nsize=64m" in page  # what was pasted is still there


def test_variables_and_included_files_are_given_with_the_file(operator: Client) -> None:
    text = "[a]\ninclude common.fio\nsize=${SIZE}\nbs=${BLOCK}\n"
    page = sent(operator, text=text, variables="SIZE=1m\n")
    assert "value of the variable <code>BLOCK</code>" in page
    assert "needs the file <code>common.fio</code>" in page
    assert re.search(r'id="variables"[^>]*>\s*SIZE=1m\nBLOCK=</textarea>', page)
    file = SimpleUploadedFile("common.fio", b"rw=randread\r\n")
    page = sent(operator, text=text, variables="SIZE=1m\r\nBLOCK=8k", included=file)
    assert "Read from the fio job file: 1 part." in page
    assert 'value="randread"' in page


def test_a_command_is_read_as_a_job_file(operator: Client) -> None:
    page = sent(operator, text="$ sudo fio --name=quick --rw=randread \\\n  --size=1m | tee out\n")
    assert 'name="p0.name" maxlength="100" value="quick"' in page


def test_yaml_opens_in_the_editor_and_saves_as_it_was(operator: Client) -> None:
    text = (BUILTIN / "first-look.yaml").read_text()
    page = sent(operator, kind="yaml", text=text)
    assert "Read from the YAML of a plan: 3 parts." in page
    fields = re.findall(r'name="([^"]+)" (?:maxlength="\d+" )?value="([^"]*)"', page)
    assert ("p0.name", "Random 4 KiB") in fields


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"text": " "}, "Paste the file&#x27;s text, or choose a file."),
        ({"kind": "yaml", "text": "title: ["}, "not YAML"),
        ({"kind": "yaml", "text": "title: x\ncolour: red"}, "This is not a valid plan"),
        ({"text": "a\x00b"}, "NUL"),
        ({"text": "[global]\nsize=1m"}, "no job in this file"),
        ({"kind": "odd", "text": "x"}, "before the first section"),
        ({"file": SimpleUploadedFile("big.fio", b"#" * (MAX_BYTES + 1))}, "big.fio is over the limit of 256 KiB"),
        (
            {"file": SimpleUploadedFile("l1.fio", b"[a]\nsize=1m\n; \xe4\n")},
            "l1.fio is not UTF-8 text: line 3 has byte 0xe4",
        ),
    ],
)
def test_it_says_what_is_wrong_with_a_file(operator: Client, data: dict[str, object], words: str) -> None:
    assert words in sent(operator, **data)
    assert not Plan.objects.exists()


def test_a_viewer_imports_nothing(viewer: Client) -> None:
    assert "Importing requires the operator role" in viewer.get("/plans/import/").content.decode()
    assert viewer.post("/plans/import/", {"kind": "job", "text": JOB}).status_code == 403


def test_an_unsound_plan_opens_with_what_is_wrong(operator: Client) -> None:
    text = "title: T\nparts: [{name: a, factors: {pattern: sideways}}]"
    page = sent(operator, kind="yaml", text=text)
    assert "<code>sideways</code> is not one of" in page
    assert not PlanVersion.objects.exists()
