import re
from pathlib import Path

from django.conf import settings

from webapp.core.colours import HEX


def test_pictures_of_the_server_have_the_colours_of_the_scripts() -> None:
    text = (Path(settings.BASE_DIR) / "frontend/src/lib/colours.ts").read_text()
    known = re.search(r"const COLOURS = \[(.*?)\]", text)
    assert known
    assert tuple(re.findall(r"#[0-9a-f]{6}", known[1])) == HEX
