"""One connection of the guest to this machine: QEMU starts this with it as standard input and output.

`relay.py PORTS NAME`: the file is JSON of names and loopback ports, read anew for each connection.
"""

import json
import socket
import sys
import threading
from pathlib import Path

PIECE_BYTES = 65536


def main(ports: Path, name: str) -> None:
    port = int(json.loads(ports.read_text())[name])
    with socket.socket(fileno=sys.stdin.fileno()) as guest, socket.create_connection(("127.0.0.1", port)) as server:
        back = threading.Thread(target=_pass_on, args=(server, guest), daemon=True)
        back.start()
        _pass_on(guest, server)
        back.join()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    try:
        while piece := source.recv(PIECE_BYTES):
            sink.sendall(piece)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, sink):  # whoever still waits for more is told that nothing comes
            _hang_up(end)


def _hang_up(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
