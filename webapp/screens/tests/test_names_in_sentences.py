"""Names that people typed are never changed, and sentences have verbs: pages of Explore and Bench, their findings."""

import html
import random
import re
from collections.abc import Iterator
from itertools import pairwise

import pytest
from django.test import Client

from webapp.tests.factories.imports import an_import

pytestmark = pytest.mark.django_db
NAMES = (
    "4 KiB", "Dell, “PERC” 5/i: 'RAID 5'", "<b>RAID</b> & co", "x" * 60, "קבוצה א", "2 × Mtron", "Oracle. Or not",
    "none",
)  # fmt: skip
VERBS = re.compile(
    r"\b(is|are|was|were|has|have|had|showed|differs?|depends?|took|cannot|shares?|stands?|falls?|fell|rises?|rose|leads?|"
    r"levels?|reach(es)?|stops?|adds?|brings?|costs?|limits?|scales?|grows?|follows?|states?|keeps?|collapses?|recovers?)\b"
)


def a_table(name: str, chance: random.Random, *, twice: bool) -> int:
    """Reads and writes at depths whose speeds level off, so that findings of curves have something to say."""
    lines = ["pattern,block_size,iodepth,iops,latency_p99_us"]
    factor = {"randread": chance.uniform(0.2, 5), "randwrite": chance.uniform(0.2, 5)}
    for pattern, depth in ((pattern, depth) for pattern in factor for depth in (1, 2, 4, 8, 16, 32)):
        speed = factor[pattern] * min(depth, chance.choice((4, 32))) * 1000 * chance.uniform(0.99, 1.01)
        lines += [f"{pattern},4k,{depth},{speed:.0f},{1e6 * depth / speed:.0f}"] * (2 if twice else 1)
    made = an_import(title=name, drive=name, text="\n".join(lines) + "\n")
    made.origins.update(other={name: "a"})
    return made.number


def sentences_of(client: Client, numbers: tuple[int, int]) -> Iterator[str]:
    query = f"import={numbers[0]}&import={numbers[1]}"
    for metric in ("iops", "latency_p99"):
        for x in ("matched", "iodepth"):
            address = f"/api/v1/compare?{query}&x={x}&series=imported&panel=pattern&metric={metric}"
            made = client.get(address).json()
            yield from (each["sentence"] for panel in made["panels"] for each in panel["series"] if each["sentence"])
            yield from (finding["sentence"] for finding in made["findings"])
            yield from (one["text"] for one in made["differs"])
            yield from (*made["warnings"], *made["notes"])
            names = {each["name"] for panel in made["panels"] for each in panel["series"]}
            assert names <= set(NAMES)
    products = "&".join(f"product=import:{number}" for number in numbers)
    answer = client.get(f"/api/v1/bench?{products}").json()
    yield from (sentence.partition(": ")[2] for sentence in answer["conclusions"])
    assert {each["name"] for each in answer["products"]} <= set(NAMES)


@pytest.mark.parametrize("names", list(pairwise((*NAMES, NAMES[0]))))
@pytest.mark.parametrize("twice", [False, True])
def test_sentences_have_a_verb_and_the_names_as_typed(names: tuple[str, str], twice: bool, operator: Client) -> None:
    chance = random.Random(names[0])
    first, second = (a_table(name, chance, twice=twice) for name in names)
    sentences = list(sentences_of(operator, (first, second)))
    assert sum(any(name in sentence for name in names) for sentence in sentences) > 3
    without_names = [sentence.replace(names[0], "A").replace(names[1], "B") for sentence in sentences]
    assert not [sentence for sentence in without_names if not VERBS.search(sentence)]
    for address in (
        f"/explore/?import={first}&import={second}&x=iodepth&series=imported&panel=pattern",
        f"/bench/?product=import:{first}&product=import:{second}",
    ):
        page = operator.get(address).content.decode()
        assert all(html.escape(name) in page for name in names), address
        assert "<b>RAID</b>" not in page
