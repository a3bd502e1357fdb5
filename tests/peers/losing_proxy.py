"""A way to a runner on which answers get lost, as on a network that fails at the worst moment."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path

_PIECE = 65536
REFUSAL = (
    b'{"type": "about:blank", "title": "Refused", "status": 409, "detail": "The test refuses.", '
    b'"code": "refused_by_the_test", "hint": ""}'
)

_HEAD = (
    b"HTTP/1.1 409 Conflict\r\nContent-Type: application/problem+json\r\n"
    b"Content-Length: %d\r\nConnection: close\r\n\r\n"
) % len(REFUSAL)


class LosingProxy:
    """Passes connections on from one unix socket to another.

    The first submission of a run reaches the runner, and its answer is lost; every later submission is refused here
    without asking the runner.
    """

    def __init__(self, here: Path, runner: Path) -> None:
        self._runner = runner
        self.lost = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(here))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as runner, suppress(OSError):
            request = client.recv(_PIECE)
            submits = request.startswith(b"POST /v1/runs HTTP")
            if submits and self.lost.is_set():
                head = (
                    f"HTTP/1.1 409 Conflict\r\nContent-Type: application/problem+json\r\nContent-Length: {len(REFUSAL)}"
                )
                client.sendall(head.encode() + b"\r\nConnection: close\r\n\r\n" + REFUSAL)
                return
            runner.connect(str(self._runner))
            runner.sendall(request)
            onward = threading.Thread(target=_pump, args=(client, runner), daemon=True)
            onward.start()
            if submits:
                while b"\r\n\r\n" not in runner.recv(_PIECE):
                    pass
                self.lost.set()
                client.shutdown(socket.SHUT_RDWR)  # the answer never arrives
                return
            _pump(runner, client)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(_PIECE):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
