"""Forwards one connection of the guest to a port of this machine.

QEMU starts `port_forward.py PORTS NAME` for each connection, with the connection as standard input and output. PORTS is
a JSON file of names and loopback ports.
"""

import json
import socket
import sys
import threading
from pathlib import Path

CHUNK_BYTES = 65536


def main(ports: Path, name: str) -> None:
    port = int(json.loads(ports.read_text())[name])
    with socket.socket(fileno=sys.stdin.fileno()) as guest, socket.create_connection(("127.0.0.1", port)) as server:
        back = threading.Thread(target=_copy, args=(server, guest), daemon=True)
        back.start()
        _copy(guest, server)
        back.join()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    try:
        while chunk := source.recv(CHUNK_BYTES):
            sink.sendall(chunk)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, sink):  # tells both sides that the connection has ended
            _shut_down(end)


def _shut_down(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
