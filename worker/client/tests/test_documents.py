"""The pipelines in the documents are valid YAML, and their commands exist."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from worker.client.main import build_parser

DOCUMENTS = Path(__file__).parents[3] / "docs"
FENCE = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
VARIABLE = re.compile(r"\$\{\{.*?\}\}|\"?\$\(.*?\)\"?|\"?\$\w+\"?")


def commands(text: str) -> list[list[str]]:
    """Each `sweetspot …` of a script, up to a redirection or an operator; 17 stands for variables."""
    lines = re.findall(r"^\s*(?:- |run: )?sweetspot (.*)$", text, re.MULTILINE)
    plain = [re.split(r" (?:>|\|\|)", VARIABLE.sub("17", line))[0] for line in lines]
    return [shlex.split(line.replace('"run=17', "run=17").rstrip('"')) for line in plain]


def test_the_pipelines_use_commands_that_exist() -> None:
    blocks = FENCE.findall((DOCUMENTS / "how-to/ci.md").read_text())
    assert len(blocks) == 2
    for block in blocks:
        assert yaml.safe_load(block)
        found = commands(block)
        assert {line[0] for line in found} == {"plan", "run", "wait", "results", "compare", "cancel"}
        for line in found:
            build_parser().parse_args(line)


def test_every_command_is_documented(capsys: pytest.CaptureFixture[str]) -> None:
    document = (DOCUMENTS / "reference/command-line.md").read_text()
    with pytest.raises(SystemExit):
        build_parser().parse_args(["--help"])
    names = re.findall(r"^    ([a-z]+)  ", capsys.readouterr().out, re.MULTILINE)
    assert len(names) == 10
    assert [name for name in names if f"| `{name} " not in document] == []
