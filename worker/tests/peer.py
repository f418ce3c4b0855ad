"""The server at the other end for tests: a real HTTP server that really keeps and confirms batches.

It follows the contract's rules (next number only, duplicates are fine, refusals) and can be
taken down and brought back on the same port.
"""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from worker.contract.base import (
    MAX_ENROL_BYTES,
    MAX_HELLO_BYTES,
    MAX_REPORT_BYTES,
    ContractError,
    Message,
    decode,
    encode,
)
from worker.contract.greetings import (
    SESSION_OTHER,
    Enrol,
    EnrolReply,
    Hello,
    HelloReply,
    Problem,
    TokenReply,
    TokenRequest,
)
from worker.contract.items import Finished, Item
from worker.contract.reports import AttemptReply, Batch, LogLine, Refusal, Report, ReportReply

TOKEN = "host-token-of-the-test-0123456789"
ENROLMENT_TOKEN = "enrol-me-once-please"


class Peer:
    def __init__(
        self, *, host: str = "h1", broker_url: str = "redis://127.0.0.1:1/0", keys: dict[str, str] | None = None
    ) -> None:
        self.host = host
        self.broker_url = broker_url
        self.keys = keys or {}
        self.batches: dict[str, list[Batch]] = {}
        self.arrived_at: dict[str, list[float]] = {}
        self.duplicates = 0
        self.hellos: list[Hello] = []
        self.second_hellos = 0
        self.actives: list[tuple[str, ...]] = []
        self.posts = 0
        self.bad_tokens = 0  # requests that were refused for their token
        self.cancel: set[str] = set()
        self.refuse: dict[str, str] = {}
        self.session = ""  # the only one that is accepted; "": every session
        self.refuses_hellos = False
        self.sessions: set[str] = set()  # of accepted reports
        self.bad_words: tuple[bytes, ...] = ()  # a report that holds one of these is refused as a whole
        self.lose_answers = 0  # so many reports are committed and then not answered
        self.token = TOKEN
        self.token_due = False
        self.next_token = ""
        self.log: dict[tuple[str, int], LogLine] = {}
        self.lease_s = 900.0
        self.report_every_s = 1.0
        self.reply_late_s = 0.0  # replies to reports
        self.changed = threading.Condition()
        self._server: _Server | None = None
        self.clock_ahead_s = 0.0
        self.port = 0
        self.up()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def up(self) -> None:
        peer = self

        class Handler(_Handler):
            pass

        Handler.peer = peer
        self._server = _Server(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def down(self) -> None:
        """Stop listening and cut every connection."""
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()
        self._server.cut()

    def items(self, attempt: str) -> list[Item]:
        with self.changed:
            return [item for batch in self.batches.get(attempt, []) for item in batch.items]

    def end_of(self, attempt: str) -> Finished | None:
        return next((item for item in self.items(attempt) if isinstance(item, Finished)), None)

    def wait(self, condition: "object", *, limit_s: float = 15.0) -> None:
        assert callable(condition)
        with self.changed:
            assert self.changed.wait_for(condition, limit_s), "the awaited did not happen"

    def wait_end(self, attempt: str, *, limit_s: float = 20.0) -> Finished:
        self.wait(lambda: self.end_of(attempt) is not None, limit_s=limit_s)
        end = self.end_of(attempt)
        assert end is not None
        return end

    # ---- what the server does

    def answer(self, path: str, body: bytes, token: str) -> Message:
        what = path.rpartition("/")[2]
        if what == "enrol":
            return self._enrol(decode(body, Enrol, limit=MAX_ENROL_BYTES))
        if self.next_token and token == f"Bearer {self.next_token}":
            self.token, self.next_token, self.token_due = self.next_token, "", False
        if token != f"Bearer {self.token}":
            self.bad_tokens += 1
            raise Denied(401, "bad_token", "This token is not known.")
        if what == "token":
            decode(body, TokenRequest, limit=MAX_ENROL_BYTES)
            return self._new_token()
        if what == "hello":
            return self._hello(decode(body, Hello, limit=MAX_HELLO_BYTES))
        if any(word in body for word in self.bad_words):
            raise Denied(400, "bad_message", "Report could not be read: a word in it is bad.")
        return self._report(decode(body, Report, limit=MAX_REPORT_BYTES))

    def _enrol(self, message: Enrol) -> EnrolReply:
        if message.token != ENROLMENT_TOKEN:
            raise Denied(403, "bad_token", "This token is unknown, used or expired.")
        return EnrolReply(
            host=self.host,
            host_name=message.hostname,
            host_token=TOKEN,
            broker_url=self.broker_url,
            public_keys=self.keys,
            contract=1,
        )

    def _hello(self, message: Hello) -> HelloReply:
        if self.refuses_hellos:
            raise Denied(400, "bad_message", "Hello could not be read.")
        if self.session and message.session != self.session:
            self.second_hellos += 1
            raise Denied(409, SESSION_OTHER, "Another worker is active.")
        self.hellos.append(message)
        now = time.time() + self.clock_ahead_s
        return HelloReply(contract=1, server_time=now, public_keys=self.keys, token_due=self.token_due)

    def _new_token(self) -> TokenReply:
        if not self.token_due:
            raise Denied(400, "token_not_due", "No new token is due for this host.")
        self.next_token = f"the-next-token-{len(self.hellos)}-{time.monotonic_ns()}"
        return TokenReply(host_token=self.next_token, broker_url=self.broker_url)

    def _report(self, report: Report) -> ReportReply:
        if self.session and report.session != self.session:
            raise Denied(409, SESSION_OTHER, "Another worker is active.")
        self.posts += 1
        self.sessions.add(report.session)
        self.actives.append(report.active)
        for batch in report.batches:
            self._take(batch)
        if report.log:
            self.log |= {(report.log.session, line.number): line for line in report.log.lines}
        names = dict.fromkeys([*report.active, *(batch.attempt for batch in report.batches)])
        replies = tuple(self._attempt(name) for name in names)
        return ReportReply(attempts=replies, report_every_s=self.report_every_s, token_due=self.token_due)

    def _take(self, batch: Batch) -> None:
        if batch.attempt in self.refuse:
            return
        kept = self.batches.setdefault(batch.attempt, [])
        if batch.seq == len(kept) + 1:
            kept.append(batch)
            self.arrived_at.setdefault(batch.attempt, []).append(time.time())
        elif batch.seq <= len(kept):
            self.duplicates += 1

    def _attempt(self, name: str) -> AttemptReply:
        code = self.refuse.get(name)
        refusal = Refusal(code=code, message="Refused by the test.") if code else None
        return AttemptReply(
            attempt=name,
            confirmed_seq=len(self.batches.get(name, [])),
            cancel=name in self.cancel,
            lease_until=time.time() + self.lease_s,
            refusal=refusal,
        )


class Denied(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.problem = Problem(code=code, message=message)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, *args: object) -> None:
        self._connections: set[object] = set()
        super().__init__(*args)  # type: ignore[arg-type]

    def process_request(self, request: object, client_address: object) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)  # type: ignore[arg-type]

    def cut(self) -> None:
        for connection in self._connections:
            try:
                connection.shutdown(2)  # type: ignore[attr-defined]
            except OSError:
                continue

    def handle_error(self, request: object, client_address: object) -> None:
        """Connections cut by the test are no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    peer: Peer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = 200
        with self.peer.changed:
            try:
                text = encode(self.peer.answer(self.path, body, self.headers.get("Authorization", "")))
            except Denied as error:
                status, text = error.status, encode(error.problem)
            except ContractError as error:
                status, text = 400, encode(Problem(code=error.code, message=str(error)))
            lost = self.path.endswith("report") and self.peer.lose_answers > 0
            self.peer.lose_answers -= lost
            self.peer.changed.notify_all()
        if self.path.endswith("report"):
            time.sleep(self.peer.reply_late_s)  # a busy server
        if lost:
            self.close_connection = True
            self.connection.shutdown(2)
            return
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args: object) -> None:
        """The test's output is not an access log."""
