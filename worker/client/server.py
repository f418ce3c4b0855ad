"""Requests to the server's API.

Each request opens a connection of its own, so none is cut off because it was idle. Requests that are safe to repeat are
repeated if the server cannot be reached; others are not.
"""

import http.client
import io
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import sleep
from typing import IO, Any, Protocol
from urllib.parse import quote, urlencode

from . import __version__
from .configuration import Configuration
from .errors import ClientError, Refused, ServerFailed, Unreachable, UsageError

Pairs = Sequence[tuple[str, object]]
Body = bytes | IO[bytes] | None

TIMEOUT_S = 60
DOWNLOAD_TIMEOUT_S = 300  # without a byte
UPLOAD_TIMEOUT_S = 3600  # an import is answered when all files are read
PAUSES_S = (0.5, 1, 2, 4)  # between tries
PAGE = 500
STEP_BYTES = 64 * 1024
TEMPORARY = (429, 502, 503, 504)


@dataclass(frozen=True)
class Request:
    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Body = None
    timeout: float = TIMEOUT_S
    into: IO[bytes] | None = None  # the content of a successful answer is written to it instead of being returned


class Transport(Protocol):
    """Sends a request. Raises OSError or http.client.HTTPException if there is no answer."""

    def __call__(self, request: Request) -> tuple[int, bytes]: ...


class Server:
    def __init__(self, configuration: Configuration, transport: Transport | None = None) -> None:
        self.url = configuration.url
        self._token = configuration.token
        self._transport = transport or HttpTransport(configuration.ca_file)

    def page(self, path: str) -> str:
        """The address of a page, for people."""
        return f"{self.url}/{path}"

    def get(self, path: str, query: Pairs = (), *, pauses: Sequence[float] = PAUSES_S) -> Any:
        return self._repeated("GET", path, query, None, pauses)[1]

    def put(self, path: str, body: object) -> tuple[Any, bool]:
        """The answer, and whether something was made: status 201."""
        status, answer = self._repeated("PUT", path, (), body, PAUSES_S)
        return answer, status == http.HTTPStatus.CREATED

    def post(self, path: str, body: object = None, *, repeat: bool = False) -> Any:
        """`repeat` for requests that are safe to repeat."""
        return self._repeated("POST", path, (), body, PAUSES_S if repeat else ())[1]

    def items(self, path: str, query: Pairs = (), *, most: int | None = None) -> Iterator[Any]:
        """The items of a list, page by page."""
        offset = 0
        while most is None or offset < most:
            size = PAGE if most is None else min(PAGE, most - offset)
            page = self.get(path, [*query, ("limit", size), ("offset", offset)])
            yield from page["items"]
            offset += size
            if offset >= page["count"]:
                return

    def download(self, path: str, query: Pairs, into: IO[bytes]) -> None:
        self._once(Request("GET", self._address(path, query), timeout=DOWNLOAD_TIMEOUT_S, into=into))

    def upload(self, path: str, body: IO[bytes], content_type: str) -> Any:
        length = body.seek(0, io.SEEK_END)
        body.seek(0)
        headers = {"Content-Type": content_type, "Content-Length": str(length)}
        return self._once(Request("POST", self._address(path), headers, body, UPLOAD_TIMEOUT_S))[1]

    def _repeated(self, method: str, path: str, query: Pairs, body: object, pauses: Sequence[float]) -> tuple[int, Any]:
        headers, sent = (
            ({}, None) if body is None else ({"Content-Type": "application/json"}, json.dumps(body).encode())
        )
        request = Request(method, self._address(path, query), headers, sent)
        for pause in pauses:
            try:
                return self._once(request)
            except Unreachable:
                sleep(pause)
        return self._once(request)

    def _address(self, path: str, query: Pairs = ()) -> str:
        return f"{self.url}/api/v1/{quote(path)}" + (f"?{urlencode(query)}" if query else "")

    def _once(self, request: Request) -> tuple[int, Any]:
        """The status and the answer, read as JSON."""
        own_headers = {"Authorization": f"Bearer {self._token}", "User-Agent": f"sweetspot/{__version__}"}
        try:
            status, content = self._transport(replace(request, headers={**own_headers, **request.headers}))
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(self._unreachable(error)) from error
        return status, _answer(status, content, self.url)

    def _unreachable(self, error: Exception) -> str:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, ssl.SSLCertVerificationError):
            reason_words = reason.verify_message.rstrip(".")
            return (
                f"The certificate of {self.url} cannot be verified: {reason_words}. Check the address, or give the "
                "file of its authority with --ca-file or SWEETSPOT_CA_FILE."
            )
        words = str(reason) or type(reason).__name__
        return f"{self.url} cannot be reached: {words}. Check the address and the network."


def _answer(status: int, content: bytes, url: str) -> Any:
    if status in TEMPORARY:
        raise Unreachable(f"{url} is not available at the moment (status {status}). Try again later.")
    if 300 <= status < 400:
        raise ClientError(f"{url} redirects to another address. Use that address instead.")
    try:
        decoded = json.loads(content) if content else None
    except ValueError as error:
        raise ClientError(f"{url} answered with status {status} and no JSON. Is it a Sweetspot server?") from error
    if status < 300:
        return decoded
    code, message = _problem(decoded)
    if status >= 500:
        raise ServerFailed(f"The server failed (status {status}): {message} Ask its administrator for the log.")
    raise Refused(_hint(status, message), status=status, code=code)


def _problem(answer: object) -> tuple[str, str]:
    if isinstance(answer, dict):
        return str(answer.get("code", "")), str(answer.get("message", ""))
    return "", ""


def _hint(status: int, message: str) -> str:
    if status == 401:
        return "The server does not accept the API token. Create a new one on the page Account."
    return message or f"The server refused the request (status {status})."


def _copy(response: IO[bytes], into: IO[bytes]) -> None:
    """Raises UsageError if the file cannot be written, which is no failure of the network."""
    while chunk := response.read(STEP_BYTES):
        try:
            into.write(chunk)
        except OSError as error:
            raise UsageError(f"The file cannot be written: {error}.") from error


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The token goes to the configured server and nowhere else."""

    def redirect_request(self, *_args: Any) -> None:
        return None


class HttpTransport:
    """HTTP over TLS whose certificate is verified; proxies are those of the environment."""

    def __init__(self, ca_file: str) -> None:
        try:
            context = ssl.create_default_context(cafile=ca_file or None)
        except (OSError, ssl.SSLError) as error:
            raise ClientError(f"{ca_file} is not a file of PEM certificates.") from error
        context.hostname_checks_common_name = False  # as browsers: only the alternative names are names of a server
        self._opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _NoRedirect())

    def __call__(self, request: Request) -> tuple[int, bytes]:
        sent = urllib.request.Request(  # noqa: S310 - checked
            request.url, data=request.body, headers=dict(request.headers), method=request.method
        )
        try:
            with self._opener.open(sent, timeout=request.timeout) as response:
                if request.into is None:
                    return response.status, response.read()
                _copy(response, request.into)
                return response.status, b""
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()
