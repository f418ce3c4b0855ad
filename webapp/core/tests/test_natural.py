from webapp.core.formatting import natural_key


def test_numbers_in_texts_are_sorted_as_numbers() -> None:
    texts = ["iodepth-1", "iodepth-2", "iodepth-16", "iodepth-16-b", "iodepth-x", "iodepth-٣", "9" * 40]
    assert sorted(texts, key=natural_key) == [texts[-1], *texts[:-1]]
