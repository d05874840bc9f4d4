"""A server that answers as the Hugging Face hub does, faults included."""

import contextlib
import hashlib
import json
import re
import socket
import ssl
import threading
import urllib.parse
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PIECE = 1 << 16


def git_blob(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


@dataclass
class Repository:
    files: dict
    large: set = field(default_factory=set)
    commit: str = "a" * 40

    def listing(self):
        return {"id": "o/m", "sha": self.commit,
                "siblings": [self.sibling(name) for name in self.files]}

    def sibling(self, name):
        data = self.files[name]
        row = {"rfilename": name, "size": len(data), "blobId": git_blob(data)}
        if name in self.large:
            row["lfs"] = {"sha256": sha256(data), "size": len(data),
                          "pointerSize": 134}
        return row


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def log_message(self, *_):
        pass

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_GET(self):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError,
                                 ssl.SSLError):
            self.server.owner.answer(self)

    do_HEAD = do_GET

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def cut(self):
        """Breaks the connection."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def first_byte(self):
        found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        return int(found.group(1)) if found else 0

    def send_file(self, data, etag, ranges=True, pause=None, stop=None,
                  length=None, **headers):
        """`pause`(bytes sent) is called between pieces; the connection breaks
        after `stop` bytes of this body."""
        start = self.first_byte() if ranges else 0
        condition = self.headers.get("If-Range")
        if condition and condition != etag:
            start = 0
        if start and start >= len(data):
            self.reply(416, Content_Range=f"bytes */{len(data)}")
            return
        body = data[start:]
        if start:
            self.send_response(206)
            self.send_header(
                "Content-Range",
                f"bytes {start}-{len(data) - 1}/{len(data)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(
            len(body) if length is None else length))
        self.send_header("ETag", etag)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command == "HEAD":
            return
        sent = 0
        while sent < len(body):
            end = min(sent + PIECE, len(body))
            if stop is not None:
                end = min(end, stop)
            self.wfile.write(body[sent:end])
            sent = end
            if stop is not None and sent >= stop:
                self.cut()
                return
            if pause is not None:
                pause(sent)


class Server:
    """One listening port with threads. Requests are kept in `log`."""

    def __init__(self, context=None):
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.handle_error = lambda *_: None  # clients that are killed
        self.http.owner = self
        self.scheme = "http"
        if context is not None:
            self.scheme = "https"
            self.http.socket = context.wrap_socket(
                self.http.socket, server_side=True,
                do_handshake_on_connect=False)
        self.log = []
        self.thread = threading.Thread(
            target=self.http.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    @property
    def url(self):
        return f"{self.scheme}://127.0.0.1:{self.http.server_port}"

    def close(self):
        self.http.shutdown()
        self.http.server_close()

    def answer(self, handler):
        self.log.append(Request(handler))
        self.serve(handler)

    def requests(self, part):
        return [request for request in self.log if part in request.path]


class Request:
    def __init__(self, handler):
        self.method = handler.command
        self.path = handler.path
        self.headers = {name.lower(): value
                        for name, value in handler.headers.items()}


class Storage(Server):
    """Where the hub sends those who want a large file."""

    def __init__(self, hub, context=None):
        super().__init__(context)
        self.hub = hub

    def serve(self, handler):
        name = urllib.parse.unquote(handler.path.split("?")[0][1:])
        data = self.hub.repository.files[name]
        self.hub.send(handler, name, data, f'"storage-{sha256(data)[:8]}"')


class Hub(Server):
    """`faults` maps a file's name (or "list") to functions of (handler, data,
    etag), each used for one request; one that returns True answers as usual
    after all. What is left of a list stays until its turn; `always` has those
    that are never used up."""

    def __init__(self, files, large=(), context=None, storage=False):
        self.repository = Repository(files, set(large))
        self.faults = {}
        self.always = {}
        self.storage = Storage(self) if storage else None
        super().__init__(context)

    def close(self):
        super().close()
        if self.storage:
            self.storage.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def faulty(self, handler, name, data, etag):
        waiting = self.faults.get(name)
        fault = waiting.pop(0) if waiting else self.always.get(name)
        return fault is not None and not fault(handler, data, etag)

    def send(self, handler, name, data, etag):
        if handler.command == "HEAD" or not self.faulty(
                handler, name, data, etag):
            handler.send_file(data, etag)

    def serve(self, handler):
        path = handler.path.split("?")[0]
        if path.startswith("/api/models/"):
            if not self.faulty(handler, "list", b"", ""):
                body = json.dumps(self.repository.listing()).encode()
                handler.reply(200, body, Content_Type="application/json")
            return
        found = re.fullmatch(r"/[^/]+/[^/]+/resolve/([^/]+)/(.+)", path)
        name = urllib.parse.unquote(found.group(2)) if found else None
        if name not in self.repository.files:
            handler.reply(404, b"Entry not found",
                          X_Error_Code="EntryNotFound",
                          X_Error_Message="Entry not found")
            return
        data = self.repository.files[name]
        if name not in self.repository.large:
            self.send(handler, name, data, f'"{git_blob(data)}"')
        elif self.storage is None:
            self.send(handler, name, data, f'"{sha256(data)}"')
        else:
            handler.reply(
                302, b"Found. Redirecting",
                X_Linked_Size=str(len(data)),
                X_Linked_Etag=f'"{sha256(data)}"',
                X_Repo_Commit=self.repository.commit,
                Location=f"{self.storage.url}/{urllib.parse.quote(name)}"
                         "?signature=secret")
