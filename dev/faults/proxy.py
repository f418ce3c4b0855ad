"""A faulty proxy between a host and the server: forwards bytes and injects faults. Runs as a separate program.

    python proxy.py MODE_FILE (http|tcp):LISTEN_HOST:LISTEN_PORT:TO_HOST:TO_PORT …

MODE_FILE holds JSON {"mode": …, "value": …}. The proxy reads it before every exchange:

    twice         send every request to the server twice; the worker gets the second answer
    late          delay every request by up to `value` s
    again_later   repeat every request after up to `value` s, after newer ones
    no_answer     forward the request, drop the answer
    cut_answer    close the connection after the share `value` of the answer
    cut_request   close the connection after the share `value` of the request
    spoof_key     add a key to the server's keys in its answer to a registration
    cut_all       close every connection at once, also those to the broker

Standard library only.
"""

import asyncio
import base64
import contextlib
import hashlib
import json
import os
import random
import sys
from pathlib import Path

CONNECT_LIMIT_S = 3.0
ANSWER_LIMIT_S = 60.0
POLL_S = 0.1
CHUNK_BYTES = 64 * 1024

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class ModeFile:
    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> tuple[str, float]:
        try:
            found = json.loads(self._path.read_text())
            return str(found["mode"]), float(found["value"])
        except (OSError, ValueError, KeyError):
            return "", 0.0


class Proxy:
    def __init__(self, mode_file: ModeFile, to_host: str, to_port: int) -> None:
        self._mode_file = mode_file
        self._to = (to_host, to_port)
        self._later: set[asyncio.Task[None]] = set()

    async def _connect(self) -> Streams:
        return await asyncio.wait_for(asyncio.open_connection(*self._to), CONNECT_LIMIT_S)

    # ---- bytes

    async def forward_bytes(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await self._connect()
        except OSError:
            await _close(writer)
            return
        tasks = [asyncio.create_task(each) for each in (_pump(reader, back), _pump(there, writer), self._until_cut())]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await _close(writer)
        await _close(back)

    async def _until_cut(self) -> None:
        while self._mode_file.read()[0] != "cut_all":
            await asyncio.sleep(POLL_S)

    # ---- requests

    async def forward_requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError, asyncio.IncompleteReadError, TimeoutError, ValueError):
            while True:
                request = await _message(reader)
                answer, complete = await self._exchange(request)
                writer.write(answer)
                await writer.drain()
                if not complete:
                    break
        await _close(writer)

    async def _exchange(self, request: bytes) -> tuple[bytes, bool]:
        """The answer, and whether it is complete. The connection ends after an incomplete answer."""
        mode, value = self._mode_file.read()
        if mode == "cut_all":
            return b"", False
        if mode == "late":
            await asyncio.sleep(random.uniform(0, value))  # noqa: S311
        if mode == "cut_request":
            await self._cut_request(request, value)
            return b"", False
        if mode == "twice":
            await self._send(request)
        if mode == "again_later":
            self._repeat(request, random.uniform(0, value))  # noqa: S311
        answer = await self._send(request)
        if mode == "no_answer":
            return b"", False
        if mode == "spoof_key" and b"/hello " in request.partition(b"\r\n")[0]:
            return _with_another_key(answer), True
        if mode == "cut_answer":
            return answer[: max(1, int(len(answer) * value))], False
        return answer, True

    async def _send(self, request: bytes) -> bytes:
        reader, writer = await self._connect()
        try:
            writer.write(request)
            await writer.drain()
            return await asyncio.wait_for(_message(reader), ANSWER_LIMIT_S)
        finally:
            await _close(writer)

    async def _cut_request(self, request: bytes, share: float) -> None:
        _, writer = await self._connect()
        writer.write(request[: max(1, int(len(request) * share))])
        with contextlib.suppress(OSError):
            await writer.drain()
        await _close(writer)

    def _repeat(self, request: bytes, pause_s: float) -> None:
        task = asyncio.create_task(self._send_later(request, pause_s))
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def _send_later(self, request: bytes, pause_s: float) -> None:
        await asyncio.sleep(pause_s)
        with contextlib.suppress(OSError, EOFError, asyncio.IncompleteReadError, TimeoutError, ValueError):
            await self._send(request)


def _with_another_key(answer: bytes) -> bytes:
    head, _, body = answer.partition(b"\r\n\r\n")
    try:
        reply = json.loads(body)
        key = os.urandom(32)
        reply["public_keys"][hashlib.sha256(key).hexdigest()[:16]] = base64.b64encode(key).decode()
    except (ValueError, KeyError):
        return answer
    body = json.dumps(reply).encode()
    kept = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"content-length:")]
    return b"\r\n".join([*kept, b"Content-Length: %d" % len(body)]) + b"\r\n\r\n" + body


async def _message(reader: asyncio.StreamReader) -> bytes:
    """One HTTP message with a Content-Length."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value)
    return head + await reader.readexactly(length)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        await asyncio.wait_for(writer.wait_closed(), 1)


async def main(arguments: list[str]) -> None:
    mode_file = ModeFile(Path(arguments[0]))
    servers = []
    for rule in arguments[1:]:
        how, host, port, to_host, to_port = rule.split(":")
        proxy = Proxy(mode_file, to_host, int(to_port))
        handle = proxy.forward_requests if how == "http" else proxy.forward_bytes
        servers.append(await asyncio.start_server(handle, host, int(port), limit=32 * 1024 * 1024))
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
