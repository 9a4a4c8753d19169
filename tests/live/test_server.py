"""The server shows its own page, on this machine, to whoever knows the token, and nothing else."""

import http.client
import json
import socket
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

import databanzhaf as db
from databanzhaf.live import Server, Watch, find
from tests.shell import invoke


@contextmanager
def served():
    with Server(Watch(find(Path("runs/t")))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def server():
    with served() as made:
        yield made


def ask(server, path, method="GET", **headers):
    """The answer as (status, headers, body); `path` goes on the wire as it is."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.putrequest(method, path, skip_host=True)
    for name, value in {"Host": f"127.0.0.1:{server.server_port}", **headers}.items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, dict(answer.getheaders()), body


def raw(server, request):
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as connection:
        connection.sendall(request)
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts).decode()


def test_the_page_and_its_data(server):
    status, headers, body = ask(server, f"/{server.token}/")
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert "{style}" not in body
    assert "{script}" not in body
    status, headers, body = ask(server, f"/{server.token}/data")
    assert status == 200
    assert headers["Content-Type"] == "application/json; charset=utf-8"
    assert json.loads(body)["stage"] == "waiting"
    assert server.address == f"http://127.0.0.1:{server.server_port}/{server.token}/"


def test_every_answer_has_the_headers_that_keep_it_to_itself(server):
    for path in (f"/{server.token}/", f"/{server.token}/data", "/"):
        _, headers, _ = ask(server, path)
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "connect-src 'self'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert "Server" not in headers


def test_tokens_are_long_and_new_each_time(server):
    with served() as other:
        assert len(server.token) >= 20
        assert server.token != other.token
        assert ask(server, f"/{other.token}/")[0] == 404


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/data",
        "/favicon.ico",
        "/TOKEN",
        "/TOKEN/data/",
        "/TOKEN/data?x=1",
        "/TOKEN/run.db",
        "/TOKEN/../data",
        "/TOKEN/%2e%2e/data",
        "/TOKEN/../../../../etc/passwd",
        "/TOKEN/%2e%2e%2f%2e%2e%2fetc/passwd",
        "/TOKEN/..%5c..%5crun.json",
        "/TOKEN%2fdata",
        "/SHORT/",
        "/TOKENx/",
        "/%54OKEN/",
        "http://127.0.0.1/TOKEN/",
        "*",
    ],
)
def test_other_paths_are_not_there(server, path):
    token = server.token
    path = path.replace("SHORT", token[:-1]).replace("TOKEN", token)
    status, _, body = ask(server, path)
    assert (status, body) == (404, "404 Not Found\n")


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:PORT",
        "localhost.evil.example:PORT",
        "127.0.0.1:PORT@evil.example",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.2:PORT",
        "[::1]:PORT",
        "",
        None,
    ],
)
def test_a_name_that_was_made_to_point_here_is_refused(server, host):
    asked = host and host.replace("PORT", str(server.server_port))
    for path in (f"/{server.token}/", f"/{server.token}/data", "/"):
        status, _, body = ask(server, path, Host=asked)
        assert (status, body) == (403, "403 Forbidden\n")


def test_this_machine_may_be_called_localhost_and_two_names_are_none(server):
    port, path = server.server_port, f"/{server.token}/"
    assert ask(server, path, Host=f"localhost:{port}")[0] == 200
    both = f"Host: 127.0.0.1:{port}\r\nHost: evil.example\r\n"
    assert "403 Forbidden" in raw(server, f"GET {path} HTTP/1.1\r\n{both}\r\n".encode())


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "SING"])
def test_nothing_can_be_sent(server, method):
    for path in (f"/{server.token}/", f"/{server.token}/data", "/"):
        status, headers, _ = ask(server, path, method)
        assert status == 405
        assert headers["Allow"] == "GET, HEAD"


def test_head_has_no_body(server):
    status, headers, body = ask(server, f"/{server.token}/", "HEAD")
    assert (status, body) == (200, "")
    assert int(headers["Content-Length"]) > 10_000
    assert ask(server, "/", "HEAD")[0] == 404


@pytest.mark.parametrize(
    "request_line",
    [
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
        b"GET / " + b"x" * 70_000 + b"\r\n\r\n",
        b"\xff\xfe\x00\r\n\r\n",
    ],
)
def test_what_is_no_request_harms_nothing(server, request_line):
    said = raw(server, request_line)
    assert "200" not in said[:20]
    assert ask(server, f"/{server.token}/")[0] == 200


def test_nobody_else_reaches_it_and_nothing_is_printed(server, capfd):
    assert server.server_address[0] == "127.0.0.1"
    ask(server, f"/{server.token}/")
    ask(server, "/")
    left = socket.create_connection(("127.0.0.1", server.server_port))
    left.close()
    assert capfd.readouterr() == ("", "")


def test_a_port_that_is_taken_is_named(server):
    with pytest.raises(db.InvalidInput, match=rf"port {server.server_port} .* --port"):
        Server(Watch(find(Path("runs/t"))), server.server_port)
    done = invoke("watch", "runs/t", "--port", server.server_port)
    assert done.exit_code == 2
    assert f"port {server.server_port} of 127.0.0.1 must be free; got" in done.stderr
    for port in (80, 70_000):
        assert "--port must be" in invoke("watch", "runs/t", "--port", port).stderr


def test_a_folder_without_a_run_is_refused_by_the_command():
    done = invoke("watch", "t.csv")
    assert done.exit_code == 2
    assert "there is no run in `t.csv`; got a file that is not a ledger. Give" in done.stderr
