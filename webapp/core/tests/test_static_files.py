"""Files of the front end, also while it is built anew under a running server."""

from pathlib import Path

from django.conf import LazySettings
from django.http import HttpResponse
from django.test import RequestFactory

from webapp.core.middleware import StaticFiles


def test_a_file_that_was_taken_away_is_not_found(tmp_path: Path, settings: LazySettings) -> None:
    settings.STATIC_ROOT = str(tmp_path)
    built = tmp_path / "assets/run-1.js"
    built.parent.mkdir()
    built.write_text("let one;")
    server = StaticFiles(lambda _: HttpResponse("a page"), settings)
    request = RequestFactory().get("/static/assets/run-1.js")
    found = server(request)
    assert (found.status_code, b"".join(found)) == (200, b"let one;")
    built.unlink()
    gone = server(request)
    assert (gone.status_code, "rebuilt" in gone.content.decode()) == (404, True)
    assert server(RequestFactory().get("/runs/")).content == b"a page"
