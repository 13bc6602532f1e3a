"""How many bytes a client sends for a request: a longer request is more work, and the reader
should know. Seen by a socket that answers it.
"""

from __future__ import annotations

import contextlib
import socket
import threading

from benches.peers.peer import Asked, Peer, PeerError

_REPLY = b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok"


def request_bytes(peer: Peer, path: str, keep_alive: bool) -> int:
    """Bytes of its GET, head and all; 0 where the peer sent none."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        seen: list[int] = []
        threading.Thread(target=_answer, args=(server, seen), daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}{path}"
        one = Asked(url, 1, 1.0, keep_alive, requests=1)
        # It may mind our short reply; its request was seen all the same.
        with contextlib.suppress(PeerError):
            peer.run(one if peer.can(one) else Asked(url, 1, 1.0, keep_alive))
        return seen[0] if seen else 0


def _answer(server: socket.socket, seen: list[int]) -> None:
    """Answer every request, a connection at a time, until the server's socket is closed."""
    while True:
        try:
            client, _ = server.accept()
        except OSError:
            return
        client.settimeout(2)
        with client:
            got = b""
            while True:
                try:
                    piece = client.recv(65536)
                except OSError:
                    break
                if not piece:
                    break
                got += piece
                if b"\r\n\r\n" in got:
                    seen.append(got.index(b"\r\n\r\n") + 4)
                    got = b""
                    client.sendall(_REPLY)
