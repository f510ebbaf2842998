# SPDX-License-Identifier: Apache-2.0
"""TLS and SASL against brokers of their own: connects, and says in plain words what is wrong when
the two ends do not agree."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import e2e  # noqa: E402
from e2e import check, check_equal, test  # noqa: E402

_started = {}


class Secured:
    """A broker with such a listener, started once for all tests here, and what a client sets."""

    def __init__(self, *variant):
        self.variant = variant
        if variant not in _started:
            e2e.broker("start", *variant)
            _started[variant] = e2e.broker("address", "--plain", *variant)
        self.plain = _started[variant]
        lines = e2e.broker("properties", *variant).splitlines()
        self.properties = dict(line.split("=", 1) for line in lines)
        self.address = self.properties.pop("bootstrap.servers")

    def config(self, topic, **changes):
        properties = {name: value for name, value in {**self.properties, **changes}.items()
                      if value is not None}
        setting = e2e.config(topic, [topic], e2e.handler(), url=f"kafka://{self.address}")
        setting["brokers"]["main"]["properties"] = properties
        return setting

    def run(self, folder, name, **changes):
        """Runs ten messages through; 0 means that all went well."""
        topic = e2e.unique(name)
        e2e.admin("create", topic, 1, address=self.plain)
        e2e.admin("produce", topic, 10, address=self.plain)
        service = e2e.Service(self.config(topic, **changes), folder).start()
        service.wait_settled(10)
        return service.stop()

    def refusal(self, folder, code, **changes):
        """Starts with what does not fit; returns the line that says so. It keeps trying."""
        service = e2e.Service(self.config("t", **changes), folder).start()
        line = service.wait_log("broker.down", code=code)
        check(service.is_alive(), "it keeps trying")
        check_equal(service.stop(), 0, "exit code after SIGTERM")
        return line

    def check_connect(self, folder, **changes):
        file = folder / "connect.yaml"
        file.write_text(json.dumps(self.config("t", **changes)))
        return e2e.laneway("check", "--connect", str(file))


@test
def tls_connects(folder):
    check_equal(Secured("--tls").run(folder, "tls"), 0, "exit code")


@test
def plaintext_against_tls_is_explained(folder):
    line = Secured("--tls").refusal(folder, "E0501",
                                    **{"security.protocol": "plaintext", "ssl.ca.location": None})
    check("TLS listener" in line["help"] and "ssl" in line["help"], f"help: {line}")


@test
def tls_without_the_authority_is_explained(folder):
    line = Secured("--tls").refusal(folder, "E0501", **{"ssl.ca.location": None})
    check("ssl.ca.location" in line["help"], f"help: {line}")


@test
def tls_against_plaintext_is_explained(folder):
    secured = Secured("--tls")
    secured.address = secured.plain
    line = secured.refusal(folder, "E0501")
    check("security.protocol" in line["help"], f"help: {line}")


@test
def sasl_plain_connects(folder):
    check_equal(Secured("--sasl").run(folder, "plain"), 0, "exit code")


@test
def scram_connects_or_says_that_the_client_is_too_old(folder):
    """librdkafka before 2.6.1 sends a nonce that this broker refuses like a wrong password."""
    sasl, topic = Secured("--sasl"), e2e.unique("scram")
    e2e.admin("create", topic, 1, address=sasl.plain)
    e2e.admin("produce", topic, 10, address=sasl.plain)
    scram = {"sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "scram",
             "sasl.password": "scram-secret"}
    service = e2e.Service(sasl.config(topic, **scram), folder).start()

    def is_decided():
        status = service.status()
        return service.find("broker.down") or (status and e2e.settled_of(status) >= 10)

    e2e.wait_for("an end", is_decided)
    line = service.find("broker.down")
    if line:
        check_equal(line["code"], "E0502", "code")
        check("cannot use SCRAM with newer brokers" in line["help"], f"help: {line}")
    check_equal(service.stop(), 0, "exit code")


@test
def a_wrong_password_is_explained_and_never_printed(folder):
    sasl = Secured("--sasl")
    line = sasl.refusal(folder, "E0502", **{"sasl.password": "not-the-secret"})
    check("sasl.password" in line["help"], f"help: {line}")
    text = (folder / "member.log").read_text()
    check("not-the-secret" not in text, "the password is nowhere in the log")
    found = sasl.check_connect(folder, **{"sasl.password": "not-the-secret"})
    check_equal(found.returncode, 77, f"exit code of check --connect: {found}")
    check("E0502" in found.stdout + found.stderr, f"check --connect: {found}")


@test
def sasl_over_tls_connects(folder):
    check_equal(Secured("--tls", "--sasl").run(folder, "both"), 0, "exit code")


if __name__ == "__main__":
    try:
        e2e.run()
    finally:
        for variant in _started:
            e2e.broker("stop", *variant)
