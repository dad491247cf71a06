"""What stands before an S3 server: it counts requests and bytes, and spoils some of them."""

import http.client
import socket
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


def refusal(code):
    return f"<Error><Code>{code}</Code><Message>It is refused.</Message></Error>".encode()


# By the kind of fault: status and body of the answer.
REFUSALS = {
    "500": (500, refusal("InternalError")),
    "503": (503, refusal("SlowDown")),
    "skewed": (403, refusal("RequestTimeTooSkewed")),
    "denied": (403, refusal("AccessDenied")),
    "elsewhere": (301, refusal("PermanentRedirect")),
}
HOP = {"connection", "transfer-encoding", "keep-alive", "host"}
# What becomes of a request.
KINDS = ("slow", "500", "503", "lost request", "lost answer", "twice", "truncated")


class Front:
    """A server in threads of this process.

    Attributes
    ----------
    fault : function of (method, path), or None. Called once a request; returns one of `KINDS` or
        `REFUSALS`, or None.
    requests, received : Counter by (method, kind of path) of requests, and of bytes of answers.
        ``kind_of`` may be replaced.
    """

    def __init__(self, upstream):
        self.upstream, self.fault = urlsplit(upstream), None
        self.kind_of = lambda path: "all"
        self.lock = threading.Lock()
        self.forget()
        handler = type("Handler", (_Handler,), {"front": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def forget(self):
        self.requests, self.received, self.spoiled = Counter(), Counter(), Counter()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def forward(self, method, path, headers, body):
        connection = http.client.HTTPConnection(self.upstream.netloc, timeout=60)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle(self):
        # A client that is killed, or gives up, is no error here.
        with suppress(ConnectionError, TimeoutError):
            super().handle()

    def _serve(self):
        front, path = self.front, self.path
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {k: v for k, v in self.headers.items() if k.lower() not in HOP}
        fault = front.fault and front.fault(self.command, path)
        if fault:
            with front.lock:
                front.spoiled[fault] += 1
        if fault == "lost request":
            return self._hang_up()
        if fault in REFUSALS:
            status, content = REFUSALS[fault]
            return self._answer(status, [("Content-Type", "application/xml")], content)
        if fault == "slow":
            time.sleep(0.5)
        if fault == "twice":
            front.forward(self.command, path, headers, body)
        status, given, content = front.forward(self.command, path, headers, body)
        key = self.command, front.kind_of(path)
        with front.lock:
            front.requests[key] += 1
            front.received[key] += len(content)
        if fault == "lost answer":
            return self._hang_up()
        return self._answer(status, given, content, is_cut=fault == "truncated")

    def _hang_up(self):
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _answer(self, status, headers, content, *, is_cut=False):
        self.send_response_only(status)
        is_head = self.command == "HEAD"
        for name, value in headers:
            if name.lower() not in HOP and not (name.lower() == "content-length" and not is_head):
                self.send_header(name, value)
        if not is_head:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if not is_head:
            self.wfile.write(content[: len(content) // 2] if is_cut else content)
        if is_cut and not is_head:
            self._hang_up()


for _method in ("GET", "PUT", "HEAD", "DELETE", "POST"):
    setattr(_Handler, f"do_{_method}", _Handler._serve)


@contextmanager
def in_front(upstream):
    front = Front(upstream)
    try:
        yield front
    finally:
        front.close()
