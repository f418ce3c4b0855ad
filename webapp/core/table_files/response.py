"""A table as a download."""

from collections.abc import Iterator

from django.http import HttpResponse, StreamingHttpResponse

from webapp.core.table_files import Table, csv_format, json_format, parquet_format

FORMATS = {"csv": csv_format, "json": json_format, "parquet": parquet_format}  # by the extension of the file name
MAX_AT_ONCE = 4  # in each process: a long file occupies one of the sixteen threads that run Django for minutes
_begun: set[object] = set()


def file_response(table: Table, name: str, ending: str) -> HttpResponse | StreamingHttpResponse:
    """503 if too many files are being written."""
    if len(_begun) >= MAX_AT_ONCE:
        words = "The server is busy with other exports. Try again later."
        return HttpResponse(words, status=503, content_type="text/plain")
    written = FORMATS[ending]
    response = StreamingHttpResponse(_counted(written.chunks(table)), content_type=written.MEDIA_TYPE)
    response["Content-Disposition"] = f'attachment; filename="{name}.{ending}"'
    return response


def _counted(chunks: Iterator[str] | Iterator[bytes]) -> Iterator[str | bytes]:
    begun = object()
    _begun.add(begun)
    try:
        yield from chunks
    finally:
        _begun.discard(begun)
