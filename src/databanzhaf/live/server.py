"""The page and its data on 127.0.0.1, for whoever knows the token."""

from __future__ import annotations

import json
import os
import secrets
import socketserver
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from databanzhaf.errors import InvalidInput
from databanzhaf.live.page import page
from databanzhaf.live.watch import Watch

HOST = "127.0.0.1"
# Seconds that a client may take to send its request.
_PATIENCE = 10


class Server(ThreadingHTTPServer):
    """Serves one watch. Nobody but this machine reaches it, and on this machine nobody who has not
    seen the address, which holds a token of 128 bits.
    """

    # Elsewhere an address that was just left can be used again; on Windows two could share one.
    allow_reuse_address = os.name != "nt"
    daemon_threads = True

    def __init__(self, watch: Watch, port: int = 0) -> None:
        self.watch, self.page = watch, page()
        self.token = secrets.token_urlsafe(16)
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise InvalidInput(
                f"port {port} of {HOST} must be free",
                got=str(error.strerror or error),
                remedy="Give another --port, or none: then a free one is taken.",
            ) from error

    def server_bind(self) -> None:
        """As a TCP server does: the one for HTTP looks its own name up, which may take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left is no error; anything else is shown."""
        import sys

        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = _PATIENCE

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        if self.command in ("GET", "HEAD"):
            return True
        self.send_error(HTTPStatus.METHOD_NOT_ALLOWED)
        return False

    def do_GET(self) -> None:
        # A page of another site that has its name point here asks with that name.
        port = self.server.server_port
        if self.headers.get_all("Host") not in ([f"{HOST}:{port}"], [f"localhost:{port}"]):
            self.send_error(HTTPStatus.FORBIDDEN)
        elif self._asks_for(f"/{self.server.token}/"):
            self._answer(HTTPStatus.OK, "text/html", self.server.page.html)
        elif self._asks_for(f"/{self.server.token}/data"):
            state = json.dumps(self.server.watch.state(), allow_nan=False)
            self._answer(HTTPStatus.OK, "application/json", state)
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    do_HEAD = do_GET

    def _asks_for(self, path: str) -> bool:
        """Whether this very path was asked for, in a time that tells nothing of the token."""
        return secrets.compare_digest(self.path.encode(), path.encode())

    def _answer(self, status: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response_only(status)
        headers = {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Content-Security-Policy": self.server.page.policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """A plain sentence: the one of the standard library shows what was asked."""
        status = HTTPStatus(code)
        self.close_connection = True
        self._answer(status, "text/plain", f"{status.value} {status.phrase}\n")

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a page asks every two seconds."""
