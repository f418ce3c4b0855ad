"""Tests tell refusals apart by their codes: the texts are for people."""

import pytest

from webapp.core.errors import Refusal


def refuses(code: str) -> pytest.RaisesExc[Refusal]:
    return pytest.raises(Refusal, check=lambda refusal: refusal.code == code)
