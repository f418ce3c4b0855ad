"""Texts in arrays, against what PostgreSQL gives back."""

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st
from psycopg.types.array import ListDumper

from webapp.core.apps import RowArrayDumper

TEXTS = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
    | st.sampled_from(['"', "\\", '\\"', "{a,b}", "null", ""])
)


@pytest.mark.django_db
@given(TEXTS)
def test_texts_come_back_from_the_database(texts: list[str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::text[]", [texts])
        assert cursor.fetchone() == (texts,)
        assert type(cursor.adapters.get_dumper(list, "s")) is not ListDumper
        assert cursor.adapters.get_dumper(list, "s") is RowArrayDumper
