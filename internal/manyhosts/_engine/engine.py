#!/usr/bin/env python3
"""ClickHouse's engine (chdb) behind the HTTP interface of ClickHouse, for tests: one session, one query at a time.

Usage: engine.py DIRECTORY [PORT]; prints "listening on PORT". It has no users, no rights and no TLS, and listens on
loopback only. It is not for production.
"""
import gzip
import os
import re
import sys
import tempfile
import threading
import urllib.parse
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from chdb import session

MOST = 256 << 20  # bytes of a request
lock = threading.Lock()
db = session.Session(os.path.abspath(sys.argv[1]))


def literal(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def with_parameters(query, params):
    """Replaces {name:Type} by the value of param_name."""

    def one(match):
        value = params.get("param_" + match.group(1))
        if value is None:
            return match.group(0)
        return value if match.group(2) == "Int64" else literal(value)

    return re.sub(r"\{(\w+):(\w+)\}", one, query)


PROTOCOL = {"query", "database", "default_format", "user", "password", "compress", "decompress", "session_id",
            "readonly", "quota_key", "client_protocol_version"}


def with_settings(query, params):
    """Appends to a SELECT the settings that the address has."""
    settings = [f"{name} = {literal(value)}" for name, value in params.items()
                if name not in PROTOCOL and not name.startswith("param_")]
    if not settings or not re.match(r"\s*(--.*\n\s*)*(select|with)\b", query, re.I):
        return query
    return query + "\nSETTINGS " + ", ".join(settings)


def hello():
    """Answers what clickhouse-go asks first: a Native block as of a new revision, which says that the server's is 0
    so that later blocks are as the engine writes them: without information about blocks and columns."""

    def text(t):
        return bytes([len(t)]) + t.encode()

    version = db.query("SELECT version()").bytes().decode().strip().strip('"')
    columns = b""
    for name, kind, value in (
        ("displayName()", "String", text("chdb")),
        ("version()", "String", text(version)),
        ("revision()", "UInt32", bytes(4)),
        ("timezone()", "String", text("UTC")),
    ):
        columns += text(name) + text(kind) + b"\0" + value
    return b"\1\0\2\xff\xff\xff\xff\0" + b"\4\1" + columns


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer(b"")

    def do_POST(self):
        if self.headers.get("Transfer-Encoding", "") == "chunked":
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
                if len(body) > MOST:
                    return self.reply(413, b"too large")
            self.rfile.readline()
        else:
            length = int(self.headers.get("Content-Length", 0))
            if length > MOST:
                return self.reply(413, b"too large")
            body = self.rfile.read(length)
        coding = self.headers.get("Content-Encoding", "")
        if coding == "gzip":
            body = gzip.decompress(body)
        elif coding == "deflate":
            body = zlib.decompress(body)
        self.answer(body)

    def answer(self, body):
        url = urllib.parse.urlparse(self.path)
        params = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        query = params.get("query", "")
        if url.path == "/ping" or not query and not body:
            return self.reply(200, b"Ok.\n")
        try:
            self.reply(200, self.run(query, body, params))
        except Exception as error:  # the engine says what is wrong
            print(query[:200], error, file=sys.stderr, flush=True)
            self.reply(500, str(error).encode())

    def run(self, query, body, params):
        if not query:
            query, body = body.decode(), b""
        elif body and not re.match(r"\s*insert\b", query, re.I):
            query, body = query + "\n" + body.decode(), b""
        if query.lower().startswith("select displayname(), version(), revision(), timezone()"):
            return hello()
        query = with_parameters(query, params)
        out = params.get("default_format", "TabSeparated")
        if match := re.search(r"\bformat\s+(\w+)\s*;?\s*$", query, re.I):
            out, query = match.group(1), query[: match.start()]
        query = with_settings(query, params)
        with lock:
            db.query("USE " + params.get("database", "default"))
            if not body:
                return db.query(query, out).bytes()
            with tempfile.NamedTemporaryFile(suffix="." + out) as file:
                file.write(body)
                file.flush()
                query = re.sub(r"\bvalues\s*$", "", query.strip(), flags=re.I)
                db.query(f"{query} SELECT * FROM file({literal(file.name)}, {out})")
                return b""

    def reply(self, code, body):
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        if code != 200:
            self.send_header("X-ClickHouse-Exception-Code", "1")
        self.end_headers()
        self.wfile.write(body)


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Handler)
print("listening on", server.server_port, flush=True)
server.serve_forever()
