"""An S3 server of a few hundred bytes of protocol, with faults in between, in this process or before another server.

It answers what an object store's client asks: GET with ranges, HEAD, PUT with ``If-None-Match`` and ``If-Match``,
DELETE and POST of what goes, and the listing of a prefix. Signatures of requests are not looked at.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "masks"


@dataclass(frozen=True)
class Request:
    method: str
    name: str
    """Of the object, or empty: the bucket."""
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    sent: int | None = None
    """Bytes of the body after which the connection is reset; None for all."""
    hangs: bool = False
    """Nothing is answered before the server's end."""


Serve = Callable[[Request], Answer]
#: Changes what a request does: it may ask the server, or not, and answers.
Fault = Callable[[Request, Serve], Answer]


class Objects:
    """The server's objects, in memory."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, float]] = {}
        self.skew = 0.0
        """Seconds that the store's clock is ahead."""
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Answer:
        with self._lock:
            answer: Answer = getattr(self, f"_{request.method.lower()}")(request)
        return answer

    def _get(self, request: Request) -> Answer:
        if not request.name:
            return self._listing(request.query.get("prefix", [""])[0])
        found = self.objects.get(request.name)
        if found is None:
            return error(404, "NoSuchKey")
        data, modified = found
        headers = {"ETag": tag_of(data), "Last-Modified": formatdate(modified, usegmt=True)}
        wanted = request.headers.get("range")
        if wanted is None:
            return Answer(200, headers, data)
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        if int(first) >= len(data):
            return error(416, "InvalidRange")
        part = data[int(first) : int(last) + 1 if last else None]
        headers["Content-Range"] = f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}"
        return Answer(206, headers, part)

    _head = _get

    def _put(self, request: Request) -> Answer:
        found = self.objects.get(request.name)
        wanted = request.headers.get("if-match")
        if found is not None and request.headers.get("if-none-match") == "*":
            return error(412, "PreconditionFailed")
        if wanted is not None and (found is None or wanted != tag_of(found[0])):
            return error(412, "PreconditionFailed")
        self.objects[request.name] = request.body, time.time() + self.skew
        return Answer(200, {"ETag": tag_of(request.body)})

    def _delete(self, request: Request) -> Answer:
        self.objects.pop(request.name, None)
        return Answer(204)

    def _post(self, request: Request) -> Answer:
        """The deletion of several."""
        gone = re.findall(r"<Key>([^<]*)</Key>", request.body.decode())
        for name in gone:
            self.objects.pop(name, None)
        deleted = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in gone)
        return Answer(200, {"Content-Type": "application/xml"}, f"<DeleteResult>{deleted}</DeleteResult>".encode())

    def _listing(self, prefix: str) -> Answer:
        contents = "".join(
            f"<Contents><Key>{escape(name)}</Key><Size>{len(data)}</Size><ETag>{escape(tag_of(data))}</ETag>"
            f"<LastModified>{time.strftime('%Y-%m-%dT%H:%M:%S.000Z', time.gmtime(modified))}</LastModified>"
            "</Contents>"
            for name, (data, modified) in sorted(self.objects.items())
            if name.startswith(prefix)
        )
        text = f"<?xml version='1.0'?><ListBucketResult><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>"
        return Answer(200, {"Content-Type": "application/xml"}, text.encode())


class GoogleObjects(Objects):
    """The same in Google Cloud Storage's dialect: writes go by generations, which count on, and not by ETags."""

    def __init__(self) -> None:
        super().__init__()
        self.generations: dict[str, int] = {}
        """The last one of each name, 0 once it is gone."""
        self._last = 1_700_000_000_000_000

    def _get(self, request: Request) -> Answer:
        answer = super()._get(request)
        if request.name and answer.status < 300:
            answer.headers["x-goog-generation"] = str(self.generations[request.name])
        return answer

    _head = _get

    def _put(self, request: Request) -> Answer:
        assert not {"if-match", "if-none-match"} & request.headers.keys()
        wanted = request.headers.get("x-goog-if-generation-match")
        if wanted is not None and int(wanted) != self.generations.get(request.name, 0):
            return error(412, "PreconditionFailed")
        answer = super()._put(request)
        self._last += 1
        self.generations[request.name] = self._last
        answer.headers["x-goog-generation"] = str(self._last)
        return answer

    def _delete(self, request: Request) -> Answer:
        self.generations.pop(request.name, None)
        return super()._delete(request)


def options_of(address: str) -> dict[str, str]:
    """For an `ObjectStore` of ``s3://masks/...`` at ``host:port``."""
    return {"endpoint": f"http://{address}", "region": "us-east-1", "access_key_id": "a", "secret_access_key": "b"}


def tag_of(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'


def error(status: int, code: str) -> Answer:
    return Answer(status, {"Content-Type": "application/xml"}, f"<Error><Code>{code}</Code></Error>".encode())


def forward(address: str) -> Serve:
    """The objects of another server at ``host:port``."""

    def serve(request: Request) -> Answer:
        connection = http.client.HTTPConnection(address)
        query = "&".join(f"{name}={quote(value)}" for name, (value, *_) in request.query.items())
        connection.request(
            request.method, f"/{BUCKET}/{quote(request.name)}?{query}", request.body or None, request.headers
        )
        answer = connection.getresponse()
        kept = ("etag", "last-modified", "content-range", "content-type")
        headers = {name: value for name, value in answer.getheaders() if name.lower() in kept}
        body = answer.read()
        if request.method == "HEAD":
            body = bytes(int(answer.headers.get("content-length", 0)))  # of which the length is sent
        connection.close()
        return Answer(answer.status, headers, body)

    return serve


class ObjectServer(ThreadingHTTPServer):
    """Serves a bucket. ``fault`` may be set at any time; ``requests`` counts by method."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, serve: Serve) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.serve = serve
        self.fault: Fault | None = None
        self.ended = threading.Event()
        self.requests: dict[str, int] = {}

    @property
    def options(self) -> dict[str, str]:
        """For an `ObjectStore` of ``s3://masks/...``."""
        return options_of(f"127.0.0.1:{self.server_address[1]}")

    @property
    def google_options(self) -> dict[str, str]:
        """For an `ObjectStore` of ``gs://masks/...``."""
        url = self.options["endpoint"]
        names = ("client_email", "private_key", "private_key_id")
        account = {**dict.fromkeys(names, ""), "gcs_base_url": url, "disable_oauth": True}
        return {"base_url": url, "service_account_key": json.dumps(account)}

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that went away are no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are sent apart
    server: ObjectServer

    def _do(self) -> None:
        parts = urlsplit(self.path)
        bucket, _, name = unquote(parts.path).lstrip("/").partition("/")
        assert bucket == BUCKET
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        request = Request(self.command, name, parse_qs(parts.query, keep_blank_values=True), headers, body)
        self.server.requests[self.command] = self.server.requests.get(self.command, 0) + 1
        fault = self.server.fault
        answer = self.server.serve(request) if fault is None else fault(request, self.server.serve)
        if answer.hangs:
            self.server.ended.wait()
        if answer.hangs or answer.sent == 0:
            self.close_connection = True
            return
        self.send_response(answer.status)
        sent = {"Content-Length": str(len(answer.body)), **answer.headers}
        for header, value in sent.items():
            self.send_header(header, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body[: answer.sent])
        if answer.sent is not None or int(sent["Content-Length"]) != len(answer.body):
            self.close_connection = True

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _do

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


@contextmanager
def serving_objects(serve: Serve | None = None) -> Iterator[ObjectServer]:
    """A server in threads of this process; of its own objects, or of those of another server."""
    server = ObjectServer(serve or Objects())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def serving_moto() -> Iterator[str]:
    """The address of an S3 server that others wrote, with an empty bucket, in a thread of this process."""
    import pytest

    found = pytest.importorskip("moto.server", reason="moto's server is not installed")
    server = found.ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    address = ":".join(map(str, server.get_host_and_port()))
    connection = http.client.HTTPConnection(address)
    signed = {"Authorization": "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/s3/aws4_request"}
    connection.request("PUT", f"/{BUCKET}", headers=signed)
    assert connection.getresponse().status == 200
    connection.close()
    try:
        yield address
    finally:
        server.stop()


# -- faults ----------------------------------------------------------------------------------------------

ONE_OF_READING = ("GET", "HEAD")


def _reading(change: Callable[[Answer], Answer]) -> Fault:
    """A fault of what is read, where something is there."""

    def fault(request: Request, serve: Serve) -> Answer:
        answer = serve(request)
        is_value = request.method == "GET" and request.name and answer.status < 300
        return change(answer) if is_value else answer

    return fault


def _always(answer: Answer, *methods: str) -> Fault:
    """A fault of all requests, or of those with some methods: the server is not asked."""

    def fault(request: Request, serve: Serve) -> Answer:
        return answer if not methods or request.method in methods else serve(request)

    return fault


def _flipped(data: bytes, place: int) -> bytes:
    at = place % len(data) if data else 0
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] if data else data


def _after(answer: Answer) -> Fault:
    """A fault of writing: it is done, and the answer is lost, or another one."""

    def fault(request: Request, serve: Serve) -> Answer:
        done = serve(request)
        return answer if request.method == "PUT" else done

    return fault


def _stored_otherwise(change: Callable[[bytes], bytes]) -> Fault:
    """A fault of writing: something else is kept than what was sent."""

    def fault(request: Request, serve: Serve) -> Answer:
        if request.method != "PUT":
            return serve(request)
        return serve(replace(request, body=change(request.body)))

    return fault


#: By name: what may go wrong with a store.
FAULTS: dict[str, Fault] = {
    "resets before the answer": _always(Answer(200, sent=0)),
    "resets in the body": _reading(lambda answer: replace(answer, sent=len(answer.body) // 2)),
    "resets after the head": _reading(lambda answer: replace(answer, sent=1)),
    "half an object": _reading(lambda answer: replace(answer, body=answer.body[: len(answer.body) // 2])),
    "an empty object": _reading(lambda answer: replace(answer, body=b"")),
    "a wrong byte in the value": _reading(lambda answer: replace(answer, body=_flipped(answer.body, -3))),
    "a wrong byte in the head": _reading(lambda answer: replace(answer, body=_flipped(answer.body, 20))),
    "a wrong byte in the magic": _reading(lambda answer: replace(answer, body=_flipped(answer.body, 1))),
    "more bytes than there are": _reading(lambda answer: replace(answer, body=answer.body + b"more")),
    "another page": _reading(lambda _: Answer(200, {"Content-Type": "text/html"}, b"<html>Please log in</html>")),
    "a size of terabytes": _reading(lambda answer: replace(answer, headers={"Content-Length": str(1 << 43)})),
    "500": _always(error(500, "InternalError")),
    "503, slow down": _always(error(503, "SlowDown")),
    "403": _always(error(403, "AccessDenied")),
    "403, a clock that is off": _always(error(403, "RequestTimeTooSkewed")),
    "401": _always(error(401, "Unauthorized")),
    "no bucket": _always(error(404, "NoSuchBucket")),
    "a redirect to itself": _always(Answer(307, {"Location": f"/{BUCKET}/loop"})),
    "writes forbidden": _always(error(403, "AccessDenied"), "PUT"),
    "full": _always(error(507, "InsufficientStorage"), "PUT"),
    "writes answered, not done": _always(Answer(200, {"ETag": '"0"'}), "PUT"),
    "writes done, not answered": _after(Answer(200, sent=0)),
    "writes done, and called failed": _after(error(500, "InternalError")),
    "half is kept": _stored_otherwise(lambda body: body[: len(body) // 2]),
    "nothing is kept": _stored_otherwise(lambda _: b""),
    "a wrong byte is kept": _stored_otherwise(lambda body: _flipped(body, -3)),
    "exists, and is not there": _always(error(412, "PreconditionFailed"), "PUT"),
    "a conflict": _always(error(409, "ConditionalRequestConflict"), "PUT"),
    "reads never end": _always(Answer(200, hangs=True), *ONE_OF_READING),
    "writes never end": _always(Answer(200, hangs=True), "PUT"),
}


def _skewed(seconds: float) -> Fault:
    def fault(request: Request, serve: Serve) -> Answer:
        answer = serve(request)
        kept = {name: value for name, value in answer.headers.items() if name.title() != "Last-Modified"}
        return replace(answer, headers={**kept, "Last-Modified": formatdate(time.time() + seconds, usegmt=True)})

    return fault


FAULTS["a clock years ahead"] = _skewed(1e8)
FAULTS["a clock years behind"] = _skewed(-1e8)
