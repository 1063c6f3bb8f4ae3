"""A real HTTP server that hands out one file or several, and misbehaves in every way."""

from __future__ import annotations

import http.server
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class Server(http.server.ThreadingHTTPServer):
    """Serves ``content`` at every path, or each file at its own below ``folder``.

    ``behave`` says what goes wrong with each request.
    """

    daemon_threads = True

    def __init__(self, content: bytes | Mapping[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = content
        self.behave: list[str] = []
        self.requests: list[tuple[str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/a.zip"

    @property
    def folder(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/folder"

    def content_of(self, path: str) -> bytes | None:
        """The content at a path; None if there is no such file."""
        if isinstance(self.content, bytes):
            return self.content
        return self.content.get(path.removeprefix("/folder/"))


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.requests.append((self.path, wanted))
        turn = len(self.server.requests) - 1
        behave = self.server.behave
        how = behave[min(turn, len(behave) - 1)] if behave else "well"
        start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]) if wanted else 0
        whole = self.server.content_of(self.path)
        if how.isdigit() or whole is None:
            self.send_error(int(how) if how.isdigit() else 404)
            return
        content = whole
        if how == "redirect":
            self.send_response(302)
            self.send_header("Location", "/elsewhere.zip")
            self.end_headers()
            return
        if how == "redirect without end":
            self.send_response(302)
            self.send_header("Location", f"/x{turn}.zip")
            self.end_headers()
            return
        if how in ("wrong file", "wrong file of the right size"):
            content = b"<html>please log in</html>"
            if how.endswith("size"):
                content = content.ljust(len(whole))
        if how == "ignores ranges":
            start = 0
        if how == "no range beyond":
            self.send_response(416)
            self.end_headers()
            return
        body = content[start:]
        if how == "another range":
            body, start_said = content[start + 1 :], start + 1
        else:
            start_said = start
        self.send_response(206 if start or how == "another range" else 200)
        if start or how == "another range":
            self.send_header(
                "Content-Range", f"bytes {start_said}-{len(content) - 1}/{len(content)}"
            )
        if how == "says too much":
            self.send_header("Content-Length", str(len(body) + 1000))
        elif how == "says too little":
            self.send_header("Content-Length", str(len(body) // 2))
        elif how not in ("no length", "no length, truncated", "too long"):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if how in ("truncated", "no length, truncated"):
            body = body[: max(1, len(body) // 3)]
        if how == "too long":
            body += b"x" * 100
        try:
            if how == "stalls":
                self.wfile.write(body[:100_000])
                self.wfile.flush()
                time.sleep(1.5)
                return
            self.wfile.write(body)
        except OSError:
            pass  # the client went away, as it should


@contextmanager
def serving(content: bytes | Mapping[str, bytes]) -> Iterator[Server]:
    """A server of ``content`` that runs while the context lasts."""
    with Server(content) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
