# SPDX-License-Identifier: Apache-2.0
"""TLS, tokens, passwords and certificates against a broker of its own: connects, and says in plain
words what is wrong when the two ends do not agree. It keeps trying, and no secret is printed."""
import json
import pathlib
import socket
import ssl
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support/pulsar"))
import e2e_pulsar as e2e  # noqa: E402
from e2e_pulsar import check, check_equal, test  # noqa: E402

VARIANT = ("--token", "--tls")
_info = {}


class Secured:
    """A broker with TLS and tokens, started once for all tests here, and what a client sets."""

    def __init__(self):
        if not _info:
            e2e.broker("start", *VARIANT)
            _info.update(line.split("=", 1) for line in e2e.broker("info", *VARIANT).splitlines())
        self.info = _info
        self.url, self.plain = self.info["PULSAR_URL"], self.info["PULSAR_URL_PLAIN"]
        self.trust = {"trust_file": self.info["PULSAR_CA"]}

    def file(self, name):
        return pathlib.Path(self.info[f"PULSAR_TOKEN_{name}_FILE"])

    def token(self, name="LANEWAY"):
        return {"token": f"file://{self.file(name)}"}

    def produce(self, topic, count):
        e2e.broker("client", *VARIANT, "produce", topic, str(count))

    def config(self, topic, url=None, tls=None, auth=None):
        setting = e2e.config("sub", [topic], e2e.handler(), address=url or self.url)
        setting["brokers"]["main"].update({"tls": tls} if tls else {})
        setting["brokers"]["main"].update({"auth": auth} if auth else {})
        return setting

    def works(self, folder, name, **changes):
        """Ten messages go through; returns the log of a service that ended well."""
        topic = e2e.unique(name)
        self.produce(topic, 10)
        service = e2e.Service(self.config(topic, **changes), folder).start()
        service.wait_settled(10)
        check_equal(service.stop(), 0, "exit code")
        return service

    def refusal(self, folder, code, event="broker.down", **changes):
        """Starts with what does not fit; returns the line that says so. It keeps trying."""
        service = e2e.Service(self.config("asked", **changes), folder).start()
        line = service.wait_log(event, code=code, timeout=60)
        check(service.is_alive(), "it keeps trying")
        check_equal(service.stop(), 0, "exit code after SIGTERM")
        print(f"{line['code']} {line['msg']}\n  help: {line['help']}")
        return line

    def check_connect(self, folder, **changes):
        file = folder / "connect.yaml"
        setting = self.config("asked", **changes)
        admin = {"admin_url": self.info["PULSAR_ADMIN_URL_TLS"]}
        setting["brokers"]["main"]["properties"] = admin
        file.write_text(json.dumps(setting))
        return e2e.laneway("check", "--connect", str(file))


def check_says(line, *words):
    text = f"{line['msg']} {line['help']}"
    for word in words:
        check(word in text, f"no {word!r} in: {text}")


@test
def token_over_tls_connects(folder):
    secured = Secured()
    secured.works(folder, "token", tls=secured.trust, auth=secured.token())


@test
def token_without_tls_connects(folder):
    secured = Secured()
    secured.works(folder, "plain", url=secured.plain, auth=secured.token())


@test
def name_and_password_connect(folder):
    secured = Secured()
    params = {"username": secured.info["PULSAR_USER"], "password": secured.info["PULSAR_PASSWORD"]}
    secured.works(folder, "basic", tls=secured.trust,
                  auth={"plugin": "basic", "params": json.dumps(params)})


@test
def a_client_certificate_connects(folder):
    secured = Secured()
    tls = {**secured.trust, "certificate_file": secured.info["PULSAR_CLIENT_CERT"],
           "key_file": secured.info["PULSAR_CLIENT_KEY"]}
    secured.works(folder, "mtls", tls=tls, auth={"plugin": "tls"})


@test
def wrong_tokens_are_refused_and_never_printed(folder):
    secured = Secured()
    for name, cause in (("FOREIGN", "the key that signed it"), ("EXPIRED", "the token expired at")):
        line = secured.refusal(folder, "E0502", tls=secured.trust, auth=secured.token(name))
        check_says(line, "refused the authentication", cause)
        found = secured.check_connect(folder, tls=secured.trust, auth=secured.token(name))
        check_equal(found.returncode, 77, f"exit code of check --connect: {found}")
        text = (folder / "member.log").read_text() + found.stdout + found.stderr
        check(secured.file(name).read_text().strip() not in text, "the token was printed")


@test
def no_token_is_refused(folder):
    secured = Secured()
    check_says(secured.refusal(folder, "E0502", tls=secured.trust), "none are configured")


@test
def a_token_file_that_is_not_there_is_named(folder):
    secured = Secured()
    auth = {"token": f"file://{folder}/nothing.jwt"}
    service = e2e.Service(secured.config("asked", tls=secured.trust, auth=auth), folder).start()
    line = service.wait_log("broker.down", timeout=60)
    check_says(line, "nothing.jwt", "No such file")
    (folder / "nothing.jwt").write_text(secured.file("LANEWAY").read_text())
    service.wait_log("broker.up")
    check_equal(service.stop(), 0, "exit code")


@test
def a_role_without_the_right_is_told_so(folder):
    secured = Secured()
    secured.produce("asked", 1)
    line = secured.refusal(folder, "E0504", "source.error", tls=secured.trust,
                           auth=secured.token("GUEST"))
    check_says(line, "asked", "not authorized")


@test
def a_token_that_ends_is_read_again(folder):
    """The broker asks for another one when it has ended: the file has that by then."""
    secured = Secured()
    topic, file = e2e.unique("ends"), folder / "token.jwt"
    file.write_text(e2e.broker("token", *VARIANT, "laneway", "4"))
    setting = secured.config(topic, tls=secured.trust, auth={"token": f"file://{file}"})
    service = e2e.Service(setting, folder).start()
    service.wait_log("broker.up")
    ends = time.monotonic() + 4
    file.write_text(e2e.broker("token", *VARIANT, "laneway", "600"))
    # Twice the time after which the broker looks for such tokens, which it does every 2 s.
    e2e.wait_for("the end of the token", lambda: time.monotonic() > ends + 4)
    secured.produce(topic, 10)
    service.wait_settled(10)
    check(service.find("broker.down") is None, "the connection was kept")
    check_equal(service.stop(), 0, "exit code")


@test
def plaintext_against_tls_is_explained(folder):
    secured = Secured()
    url = secured.url.replace("pulsar+ssl", "pulsar")
    check_says(secured.refusal(folder, "E0501", url=url), "pulsar+ssl://", "TLS")


@test
def tls_against_plaintext_is_explained(folder):
    secured = Secured()
    url = secured.plain.replace("pulsar", "pulsar+ssl")
    check_says(secured.refusal(folder, "E0509", url=url, tls=secured.trust), "pulsar://", "TLS")


@test
def another_authority_is_explained(folder):
    secured = Secured()
    tls = {"trust_file": secured.info["PULSAR_OTHER_CA"]}
    check_says(secured.refusal(folder, "E0510", tls=tls), "trust_file")


class OtherName:
    """The same broker, behind a listener whose certificate is for another host."""

    def __init__(self, secured):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(secured.info["PULSAR_WRONG_HOST_CERT"],
                                     secured.info["PULSAR_WRONG_HOST_KEY"])
        host, port = secured.plain.split("://")[1].split(":")
        self.target = (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"pulsar+ssl://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.forward, args=(client,), daemon=True).start()

    def forward(self, client):
        try:
            outer = self.context.wrap_socket(client, server_side=True)
            inner = socket.create_connection(self.target)
        except OSError:  # the client refuses the certificate
            client.close()
            return
        outer.settimeout(0.02)  # one thread for both ways: TLS sockets are not for two
        inner.setblocking(False)
        while self.pump(outer, inner) and self.pump(inner, outer):
            pass
        outer.close()
        inner.close()

    @staticmethod
    def pump(source, target):
        """Carries on what is there; False at the end."""
        try:
            data = source.recv(65536)
        except (BlockingIOError, TimeoutError, ssl.SSLWantReadError):
            return True
        except OSError:
            return False
        if data:
            target.sendall(data)
        return bool(data)


@test
def a_certificate_for_another_host_is_explained(folder):
    secured = Secured()
    other = OtherName(secured)
    line = secured.refusal(folder, "E0511", url=other.url, tls=secured.trust)
    check_says(line, "elsewhere.example", "127.0.0.1")
    secured.works(folder, "anyhost", url=other.url, auth=secured.token(),
                  tls={**secured.trust, "validate_hostname": False})


if __name__ == "__main__":
    e2e.run(finish=lambda: _info and e2e.broker("stop", *VARIANT))
