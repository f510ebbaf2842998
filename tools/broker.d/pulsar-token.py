# SPDX-License-Identifier: Apache-2.0
"""Secrets and tokens (JSON Web Tokens, HS256) for a test broker.

  pulsar-token.py secret FILE            a new key of 32 random bytes
  pulsar-token.py make FILE ROLE [S]     prints a token that ends in S seconds (negative: has ended)
"""
import base64
import hashlib
import hmac
import json
import os
import sys
import time


def url_text(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def token(secret, role, seconds=None):
    claims = {"sub": role}
    if seconds is not None:
        claims["exp"] = int(time.time() + seconds)
    parts = [json.dumps(each, separators=(",", ":")).encode() for each in
             ({"alg": "HS256"}, claims)]
    signed = b".".join(url_text(each) for each in parts)
    return (signed + b"." + url_text(hmac.digest(secret, signed, hashlib.sha256))).decode()


def main(command, file, *more):
    if command == "secret":
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(os.urandom(32))
        return
    with open(file, "rb") as secret:
        print(token(secret.read(), more[0], *map(float, more[1:])))


if __name__ == "__main__":
    main(*sys.argv[1:])
