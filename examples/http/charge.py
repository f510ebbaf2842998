#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""charge.py PORT: a service that knows nothing of Laneway. Port 0 takes a free one.

POST /charge {"account": "a-1", "amount": 5} answers 200 with a receipt; 400 what it can never
charge; 500 when the bank is away ({"busy": 1}: in the first attempt).
"""
import http.server
import json
import sys


class Charge(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        status, answer = self.charge(body)
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def charge(self, body):
        try:
            payment = json.loads(body)
            receipt = {"account": payment["account"], "charged": payment["amount"]}
        except (KeyError, TypeError, ValueError) as why:
            return 400, {"error": f"bad payment: {why!r}"}
        attempt = int(self.headers.get("x-laneway-attempt", 1))
        if attempt <= payment.get("busy", 0):
            return 500, {"error": "the bank is away"}
        return 200, receipt

    def log_message(self, *_):
        """Says nothing of each request."""


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Charge)
print(f"listening on {server.server_port}", flush=True)
server.serve_forever()
