"""Sentences have at most 25 words. A page with longer ones from earlier may not get more of them."""

from dev.docs.sentences import DOCS, ceilings, counts, long_sentences

WORDS = " ".join(["word"] * 24)


def test_no_page_gets_more_long_sentences() -> None:
    allowed = ceilings()
    too_many = {name: count for name, count in counts().items() if count > allowed.get(name, 0)}
    assert {name: long_sentences((DOCS / name).read_text()) for name in too_many} == {}, too_many


def test_each_ceiling_is_of_a_page() -> None:
    assert [name for name in ceilings() if not (DOCS / name).is_file()] == []


def test_a_sentence_is_long_from_26_words_on() -> None:
    assert long_sentences(f"Begin {WORDS}.") == []
    assert long_sentences(f"Begin {WORDS} end. Next.") == [f"Begin {WORDS} end."]


def test_code_tables_and_lists_are_not_one_sentence() -> None:
    assert long_sentences(f"```\nBegin {WORDS} end.\n```") == []
    assert long_sentences(f"- {WORDS}\n- {WORDS}\n\n| {WORDS} | {WORDS} |") == []
    assert long_sentences(f"`one two three` [four five](https://x.example/a/b) {' '.join(['word'] * 22)}.") == []


def test_a_page_about_doing_something_ends_with_what_can_go_wrong() -> None:
    pages = [path for path in (DOCS / "how-to").glob("*.md") if not path.name.startswith(("adding-", "index."))]
    last = {path.name: path.read_text().rpartition("\n## ")[2].partition("\n")[0] for path in pages}
    assert [name for name, heading in last.items() if heading != "What can go wrong"] == []
