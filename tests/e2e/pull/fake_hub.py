"""A model hub on this machine, faults included: the API and the redirects of the hub on one port, the bytes of large
files on another, as its CDN has them.
"""
import gzip
import hashlib
import http.client
import http.server
import json
import re
import socket
import ssl
import struct
import threading
import time
import urllib.parse


def git_sha1(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Reply(Exception):
    """An answer other than the file."""

    def __init__(self, status, headers=(), body=b""):
        super().__init__(status)
        self.status, self.headers, self.body = status, dict(headers), body


class Fault:
    """What goes wrong with one request of a file's bytes; what is not set is right."""

    def __init__(self, status=0, headers=(), cut=None, reset=False, stall=False, flip=None, add=b"", ignore_range=False, shift=0,
                 gzipped=False, no_length=False, etag=None):
        self.status, self.headers = status, dict(headers)
        self.cut, self.reset, self.stall = cut, reset, stall  # after so many bytes: ends, or with RST, or says nothing more
        self.flip, self.add = flip, add  # a byte that is changed, bytes too many
        self.ignore_range, self.shift = ignore_range, shift  # answers 200; begins so many bytes too late
        self.gzipped, self.no_length, self.etag = gzipped, no_length, etag


class Hub:
    """`commits[id][sha]` is {name: bytes}, `branches[id][revision]` a sha. `large` decides what is git LFS's."""

    def __init__(self, certificate=None, cdn_certificate=None):
        self.commits, self.branches = {}, {}
        self.log, self.faults, self.api = [], {}, {}
        self.large = lambda name, data: name.endswith((".safetensors", ".gguf", ".bin", ".pt"))
        self.listing_has_blobs = True
        self.token = None  # the one that opens everything; None: no model wants one
        self.gated = set()
        self.moved = {}  # old id: new id
        self.released = threading.Event()  # lets stalled answers end
        self.lock = threading.Lock()
        self.servers = [self.start(self.hub, certificate), self.start(self.cdn, cdn_certificate)]
        self.endpoint, self.cdn_url = (f"http{'s' if c else ''}://localhost:{s.server_port}"
                                       for s, c in zip(self.servers, (certificate, cdn_certificate)))

    def start(self, answer, certificate):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.close_connection = False
                try:
                    answer(self)
                except Reply as r:
                    self.answer(r.status, r.headers, r.body)
                except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
                    self.close_connection = True

            def answer(self, status, headers, body):
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):  # a client that does not trust the certificate
                pass

        server = Server(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return server

    def close(self):
        self.released.set()
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def add(self, model, files, revision="main"):
        """A commit on a branch; its sha."""
        sha = hashlib.sha1(repr((model, revision, sorted(files.items()))).encode()).hexdigest()
        self.commits.setdefault(model, {})[sha] = files
        self.branches.setdefault(model, {})[revision] = sha
        return sha

    def fail(self, name, *faults):
        """The next answers with a file's bytes, one fault each; None is none."""
        self.faults[name] = list(faults)

    def requests(self, what=""):
        return [r for r in self.log if what in r["path"]]

    def record(self, handler, server):
        entry = {"server": server, "path": handler.path, "headers": {k.lower(): v for k, v in handler.headers.items()}, "sent": 0}
        with self.lock:
            self.log.append(entry)
        return entry

    def check_token(self, handler, model):
        given = handler.headers.get("Authorization")
        if given and self.token and given != f"Bearer {self.token}":
            raise Reply(401, {"X-Error-Message": "Invalid credentials in Authorization header"})
        is_open = given == f"Bearer {self.token}" and self.token
        if model in self.gated and not is_open:
            raise Reply(401 if not given else 403, {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access to this model is restricted"})
        if self.token and not is_open:
            raise Reply(401, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"})

    def hub(self, handler):
        entry = self.record(handler, "hub")
        url = urllib.parse.urlsplit(handler.path)
        path = urllib.parse.unquote(url.path)
        for old, new in self.moved.items():
            if f"/{old}/" in path:
                raise Reply(307, {"Location": path.replace(f"/{old}/", f"/{new}/") + ("?" + url.query if url.query else "")})
        if match := re.fullmatch(r"/api/models/(.+)/revision/([^/]+|refs/.+)", path):
            self.answer_listing(handler, *match.groups(), url.query)
        elif match := re.fullmatch(r"/([^/]+(?:/[^/]+)?)/resolve/([0-9a-f]{40})/(.+)", path):
            self.answer_file(handler, entry, *match.groups())
        else:
            raise Reply(404, {}, b"what?")

    def answer_listing(self, handler, model, revision, query):
        if faults := self.api.get(model):
            fault = faults.pop(0)
            if isinstance(fault, Reply):
                raise fault
        self.check_token(handler, model)
        if model not in self.commits:
            raise Reply(404, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"})
        sha = self.branches[model].get(revision, revision)
        if sha not in self.commits[model]:
            raise Reply(404, {"X-Error-Code": "RevisionNotFound", "X-Error-Message": f"Invalid rev id: {revision}"})
        siblings = []
        for name, data in self.commits[model][sha].items():
            item = {"rfilename": name}
            if self.listing_has_blobs and query == "blobs=true":
                item |= {"size": len(data), "blobId": git_sha1(data)}
                if self.large(name, data):
                    item |= {"blobId": "0" * 40, "lfs": {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 135}}
            siblings.append(item)
        body = json.dumps({"id": model, "sha": sha, "siblings": siblings, "tags": ["text-generation", "\ud83d"], "downloads": 1.5e3}).encode()
        handler.answer(200, {"Content-Type": "application/json"}, body)

    def answer_file(self, handler, entry, model, sha, name):
        self.check_token(handler, model)
        files = self.commits.get(model, {}).get(sha, {})
        if name not in files:
            raise Reply(404, {"X-Error-Code": "EntryNotFound"})
        data = files[name]
        if self.large(name, data):
            raise Reply(302, {"Location": f"{self.cdn_url}/{model}/{sha}/{name}?Signature=secret", "X-Repo-Commit": sha,
                              "X-Linked-Size": str(len(data)), "X-Linked-Etag": f'"{hashlib.sha256(data).hexdigest()}"'},
                        b"Found. Redirecting")
        self.send(handler, entry, name, data, git_sha1(data))

    def cdn(self, handler):
        entry = self.record(handler, "cdn")
        _, org, model, sha, name = urllib.parse.unquote(urllib.parse.urlsplit(handler.path).path).split("/", 4)
        data = self.commits[f"{org}/{model}"][sha][name]
        self.send(handler, entry, name, data, hashlib.md5(data).hexdigest())

    def send(self, handler, entry, name, data, etag):
        with self.lock:
            faults = self.faults.get(name)
            fault = (faults.pop(0) if faults else None) or Fault()
        if fault.status:
            raise Reply(fault.status, fault.headers, b"<html>an error's page, no file</html>")
        etag = f'"{fault.etag or etag}"'
        if fault.flip is not None:
            data = data[:fault.flip] + bytes([data[fault.flip] ^ 1]) + data[fault.flip + 1:]
        body, status, headers = data + fault.add, 200, {"ETag": etag, "Accept-Ranges": "bytes"}
        asked = handler.headers.get("Range")
        condition = handler.headers.get("If-Range")
        if asked and not fault.ignore_range and condition in (None, etag):
            begin = int(re.fullmatch(r"bytes=(\d+)-", asked)[1])
            if begin >= len(data):
                raise Reply(416, {"Content-Range": f"bytes */{len(data)}"})
            begin += fault.shift
            body, status = body[begin:], 206
            headers["Content-Range"] = f"bytes {begin}-{len(data) - 1}/{len(data)}"
        if fault.gzipped:
            body = gzip.compress(body)
            headers["Content-Encoding"] = "gzip"
        handler.send_response(status)
        if fault.no_length:
            headers["Connection"] = "close"
            handler.close_connection = True
        else:
            headers["Content-Length"] = str(len(body))
        for key, value in headers.items():
            handler.send_header(key, value)
        handler.end_headers()
        part = body if fault.cut is None else body[:fault.cut]
        entry["sent"] = len(part)
        handler.wfile.write(part)
        handler.wfile.flush()
        if fault.cut is None:
            return
        if fault.stall:
            self.released.wait(30)
        if fault.reset:
            time.sleep(0.2)  # what was sent arrives
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.connection.close()
        handler.close_connection = True


class Proxy:
    """An HTTP proxy that notes what goes through it."""

    def __init__(self):
        outer = self
        self.seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.seen.append(self.path)
                url = urllib.parse.urlsplit(self.path)
                connection = http.client.HTTPConnection(url.hostname, url.port)
                headers = {k: v for k, v in self.headers.items() if k.lower() not in ("proxy-connection", "connection")}
                connection.request("GET", url.path + ("?" + url.query if url.query else ""), headers=headers)
                reply = connection.getresponse()
                body = reply.read()
                self.send_response(reply.status)
                for name, value in reply.getheaders():
                    if name.lower() not in ("transfer-encoding", "connection"):
                        self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
