from webapp.core.natural import natural_key


def test_numbers_in_texts_are_in_their_order() -> None:
    texts = ["iodepth-1", "iodepth-2", "iodepth-16", "iodepth-16-b", "iodepth-x", "iodepth-٣", "9" * 40]
    assert sorted(texts, key=natural_key) == [texts[-1], *texts[:-1]]
