"""What a page claims: colours, sentences and the headline."""

import re
from dataclasses import dataclass

from webapp.compare.comparison import Comparison
from webapp.compare.headline import headline

# A claim of a difference, in the words of `compare.sentences`. "or drift" says that the claim may be false.
_DIFFERENT = re.compile(r"\d %? ?(faster|slower|higher|lower)|(reaches|has) ×|×[\d.]+ the |\bfrom .+ to .+ over ")
_EQUAL = re.compile(r"no difference")
HEDGE = "or drift"


@dataclass(frozen=True)
class Claims:
    page: bool  # a difference: a colour, or a sentence
    headline: bool
    equal: bool  # a sentence says that there is no difference
    warned: bool  # the page warns of drift


def claims_of(made: Comparison) -> Claims:
    series = [one for panel in made.panels for one in panel.series]
    sentences = [one.sentence for one in series]
    against = [found for one in series for found in (one.against_baseline, *(c.against_baseline for c in one.cells))]
    coloured = any(found is not None and found.better is not None for found in against)
    return Claims(
        page=coloured or any(map(says_different, sentences)),
        headline=says_different(headline(made)),
        equal=any(_EQUAL.search(text) for text in sentences),
        warned=any("drift" in text for text in (made.verdict, *made.notes)),
    )


def says_different(sentence: str) -> bool:
    return bool(_DIFFERENT.search(sentence)) and HEDGE not in sentence
