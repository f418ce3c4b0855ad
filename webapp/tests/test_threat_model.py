"""docs/understanding/security.md claims nothing that no test holds."""

import re

from webapp.tests.system import ROOT


def _tests_there() -> set[str]:
    files = [*ROOT.glob("webapp/**/test_*.py"), *ROOT.glob("worker/**/test_*.py")]
    return {name for file in files for name in re.findall(r"^(?:    )?def (test_\w+)", file.read_text(), re.M)}


def test_every_test_that_the_threat_model_names_exists() -> None:
    text = (ROOT / "docs/understanding/security.md").read_text()
    named = set(re.findall(r"`(test_\w+)`", text))
    assert len(named) > 30
    assert named <= _tests_there(), f"renamed or gone: {sorted(named - _tests_there())}"


def test_every_line_of_the_threat_model_names_a_test() -> None:
    text = (ROOT / "docs/understanding/security.md").read_text()
    table = text.partition("| stolen |")[2].partition("\n\n")[0].splitlines()[2:]
    assert len(table) > 10
    assert [line for line in table if "`test_" not in line and "the first four lines" not in line] == []


def test_every_claim_names_a_test() -> None:
    """Every section, and every entry of a list that has a heading of its own."""
    text = (ROOT / "docs/understanding/security.md").read_text()
    claims, _, rest = text.partition("## Tests of the claims above")
    table = rest.partition("\n\n## ")[0]
    headings = {heading.rstrip(".") for heading in re.findall(r"^- \*\*(.+?)\*\*", claims, re.M)}
    sections = set(re.findall(r"^##+ (.+)$", claims, re.M)) - {"Who trusts whom", "The browser"}
    named = set(re.findall(r"^\| (.+?) \| `test_", table, re.M))
    assert headings | sections <= named, sorted((headings | sections) - named)
