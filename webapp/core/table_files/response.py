"""A table as a download."""

from django.http import StreamingHttpResponse

from webapp.core.table_files import Table, csv_format, parquet_format

FORMATS = {"csv": csv_format, "parquet": parquet_format}  # by the extension of the file name


def file_response(table: Table, name: str, ending: str) -> StreamingHttpResponse:
    written = FORMATS[ending]
    response = StreamingHttpResponse(written.chunks(table), content_type=written.MEDIA_TYPE)
    response["Content-Disposition"] = f'attachment; filename="{name}.{ending}"'
    return response
