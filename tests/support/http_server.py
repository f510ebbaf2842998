#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""http_server.py [--port N] [--tls CERT KEY] [--client-ca CA] [--h2] ...: a service for tests.

Prints its port, then answers until its standard input ends. A request's body says what to do:
the commands of tests/engines/conformance.h, and
    show                the request as JSON, as the reply
    raw BYTES           writes the bytes as they are, and keeps the connection
    rawclose BYTES      the same, and closes it
    rawreset BYTES      the same, and resets it
    big N               200 with N bytes in chunks, as fast as they are taken
    token               401 unless the bearer token is the text in TOKEN's file, see --token
    stats               {"connections": ..., "requests": ..., "big_sent": ...}
With --h2 it speaks HTTP/2 (python3-h2) over TLS to those who can. As a proxy it answers CONNECT
with --connect STATUS, and knows no way.
"""
import argparse
import asyncio
import json
import pathlib
import socket
import ssl
import struct
import sys

counts = {"connections": 0, "requests": 0, "big_sent": 0, "open": 0}
options = None
serving = set()  # asyncio itself keeps no more than weak references


class Request:
    def __init__(self, line, headers, body):
        self.line = line
        self.headers = headers
        self.body = body

    def header(self, name):
        for key, value in self.headers:
            if key.lower() == name:
                return value
        return None


def answer(status, headers=(), body=b""):
    return status, list(headers), body


def json_answer(value):
    return answer(200, [("content-type", "application/vnd.laneway.answer+json")],
                  json.dumps(value).encode())


def echo(request):
    if request.header("x-laneway-tombstone"):
        return answer(200, [("x-laneway-reply", "null")])
    if not request.body:
        return answer(200, [("x-laneway-reply", "empty")])
    return answer(200, [], request.body)


def show(request):
    what = {"line": request.line, "headers": request.headers,
            "body": request.body.decode("latin-1")}
    return answer(200, [("content-type", "application/json")], json.dumps(what).encode())


def token(request):
    wanted = pathlib.Path(options.token).read_text().strip()
    if request.header("authorization") == f"Bearer {wanted}":
        return answer(204)
    return answer(401, [], b"who are you")


def result(word, reason, headers=()):
    return answer(200, [("x-laneway-result", word), ("x-laneway-reason", reason), *headers])


def shown(request):
    return {"headers": request.headers, "body": json.loads(request.body)}


def result_of(request, text):
    word, _, rest = text.partition(" ")
    if word == "show":
        return {"result": "ok", "reply": json.dumps(shown(request))}
    if word == "reply":
        return {"result": "ok", "reply": rest}
    if word in ("dead", "drop", "retry"):
        return {"result": word, "reason": rest}
    return "ok"


def obey_batch(request):
    """A result for each message; `status N` as the first one is the answer to all."""
    texts = [message.get("value", "") for message in json.loads(request.body)["messages"]]
    word, _, rest = texts[0].partition(" ")
    if word == "status":
        return answer(int(rest), [], b"to all of them")
    return json_answer({"results": [result_of(request, text) for text in texts]})


def obey(request):
    """(status, headers, body) of a command, or None where it is none."""
    if request.header("content-type") == "application/vnd.laneway.batch+json":
        return obey_batch(request)
    text = request.body.decode("utf-8", "replace")
    word, _, rest = text.partition(" ")
    if word == "ok":
        return answer(204)
    if word == "show":
        return show(request)
    if word == "token":
        return token(request)
    if word == "stats":
        return answer(200, [], json.dumps(counts).encode())
    if word == "reply":
        return answer(200, [], rest.encode()) if rest else \
            answer(200, [("x-laneway-reply", "empty")])
    if word == "reply-null":
        return answer(200, [("x-laneway-reply", "null")])
    if word == "output":
        topic, _, value = rest.partition(" ")
        return json_answer({"result": "ok", "outputs": [
            {"topic": topic, "key": "out", "value": value, "headers": {"h": "1"},
             "delay": "1500ms"}]})
    if word in ("dead", "drop"):
        return result(word, rest)
    if word == "retry":
        delay, _, reason = rest.partition(" ")
        more = [("x-laneway-delay", f"{delay}ms")] if int(delay) >= 0 else []
        return result("retry", reason, more)
    if word == "error":
        code, _, reason = rest.partition(" ")
        return result("error", reason, [("x-laneway-code", code)])
    return echo(request)


async def delayed(request):
    """Takes `wait MS` off; None for what is never answered."""
    while request.body.startswith(b"wait "):
        _, ms, rest = request.body.split(b" ", 2)
        await asyncio.sleep(int(ms) / 1000)
        request.body = rest
    if request.body == b"hold":
        await asyncio.get_running_loop().create_future()
    return obey(request)


# -- HTTP/1.1 -------------------------------------------------------------------------------------

async def read_request(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head[:-4].decode("latin-1").split("\r\n")
    headers = [tuple(line.split(":", 1)) for line in lines[1:]]
    headers = [(name, value.strip()) for name, value in headers]
    request = Request(lines[0], headers, b"")
    size = int(request.header("content-length") or 0)
    request.body = await reader.readexactly(size)
    return request


def write_answer(writer, status, headers, body):
    head = [f"HTTP/1.1 {status} Whatever"]
    head += [f"{name}: {value}" for name, value in headers]
    if status != 204:
        head.append(f"content-length: {len(body)}")
    writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + (b"" if status == 204 else body))


async def write_big(writer, size):
    writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    piece = b"x" * 65536
    while size > 0:
        writer.write(b"10000\r\n" + piece + b"\r\n")
        await writer.drain()
        counts["big_sent"] += len(piece)
        size -= len(piece)
    writer.write(b"0\r\n\r\n")


def reset(writer):
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def serve_one(reader, writer):
    """False: the connection is over."""
    request = await read_request(reader)
    counts["requests"] += 1
    if request.line.startswith("CONNECT "):
        write_answer(writer, options.connect, [], b"no way")
        await writer.drain()
        return options.connect != 200
    word, _, rest = request.body.partition(b" ")
    if word in (b"raw", b"rawclose", b"rawreset"):
        writer.write(rest)
        await writer.drain()
        if word == b"rawreset":
            await asyncio.sleep(0.05)
            reset(writer)
        return word == b"raw"
    if word == b"big":
        await write_big(writer, int(rest))
        return True
    if word == b"crash":
        return False
    write_answer(writer, *await delayed(request))
    await writer.drain()
    return True


async def serve_http1(reader, writer):
    while await serve_one(reader, writer):
        pass


# -- HTTP/2 ---------------------------------------------------------------------------------------

async def answer_stream(connection, writer, stream, request):
    status, headers, body = await delayed(request)
    if stream in connection.streams_reset:
        return
    connection.send_headers(stream, [(":status", str(status)), *headers])
    connection.send_data(stream, body, end_stream=True)
    writer.write(connection.data_to_send())


async def serve_http2(reader, writer):
    import h2.config
    import h2.connection
    import h2.events
    connection = h2.connection.H2Connection(
        h2.config.H2Configuration(client_side=False, header_encoding="latin-1"))
    connection.streams_reset = set()
    connection.initiate_connection()
    writer.write(connection.data_to_send())
    streams = {}
    tasks = set()
    while data := await reader.read(65536):
        for event in connection.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                headers = [(name, value) for name, value in event.headers]
                streams[event.stream_id] = Request("HTTP/2", headers, b"")
            elif isinstance(event, h2.events.DataReceived):
                streams[event.stream_id].body += event.data
                connection.acknowledge_received_data(event.flow_controlled_length,
                                                     event.stream_id)
            elif isinstance(event, h2.events.StreamReset):
                connection.streams_reset.add(event.stream_id)
            elif isinstance(event, h2.events.StreamEnded):
                counts["requests"] += 1
                request = streams.pop(event.stream_id)
                task = asyncio.ensure_future(
                    answer_stream(connection, writer, event.stream_id, request))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        writer.write(connection.data_to_send())
        await writer.drain()


async def serve(reader, writer):
    counts["connections"] += 1
    serving.add(asyncio.current_task())
    try:
        tls = writer.get_extra_info("ssl_object")
        is_h2 = options.h2 and tls.selected_alpn_protocol() == "h2"
        await (serve_http2 if is_h2 else serve_http1)(reader, writer)
    except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError, BrokenPipeError):
        pass
    finally:
        serving.discard(asyncio.current_task())
        writer.close()


def tls_context():
    if not options.tls:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*options.tls)
    context.set_alpn_protocols(["h2", "http/1.1"] if options.h2 else ["http/1.1"])
    if options.client_ca:
        context.load_verify_locations(options.client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


async def main():
    # A port that is given is held by whoever gave it, so that nobody else gets it meanwhile.
    server = await asyncio.start_server(serve, "127.0.0.1", options.port, ssl=tls_context(),
                                        limit=1 << 26, backlog=1024,
                                        reuse_port=options.port != 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)
    sys.stdout.flush()
    import os
    os._exit(0)


parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--tls", nargs=2)
parser.add_argument("--client-ca")
parser.add_argument("--h2", action="store_true")
parser.add_argument("--token")
parser.add_argument("--connect", type=int, default=502)
options = parser.parse_args()
if options.h2:
    try:
        import h2.connection  # noqa: F401
    except ImportError:
        print("no h2", flush=True)
        sys.exit(77)
asyncio.run(main())
