# SPDX-License-Identifier: Apache-2.0
"""Prepares topics and namespaces of a real Pulsar and asks what is left, by its REST interface.

Needs nothing but Python's own library. Runs as `tools/broker pulsar admin VERB ...`, or by itself
with $PULSAR_ADMIN_URL (and $PULSAR_ADMIN_TOKEN_FILE or $PULSAR_CA where the broker wants them);
tests in Python may import it and use the class Admin. A topic is NAME (in public/default),
TENANT/NAMESPACE/NAME or a full name; a namespace is TENANT/NAME. What comes out on stdout is
data, one JSON value; text is on stderr. Exit 0 = done, 1 = refused, with the broker's reason.
"""
import argparse
import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

WAIT_S = 30
# VERB: (method, path below the namespace, what its values are in the body)
POLICIES = {
    "deduplication": ("POST", "deduplication", lambda on: truth(on)),
    "retention": ("POST", "retention", lambda minutes, megabytes: {
        "retentionTimeInMinutes": int(minutes), "retentionSizeInMB": int(megabytes)}),
    "ttl": ("POST", "messageTTL", lambda seconds: int(seconds)),
    "backlog-quota": ("POST", "backlogQuota?backlogQuotaType=destination_storage",
                      lambda size, policy="producer_exception": {
                          "limitSize": int(size), "limit": int(size), "policy": policy}),
    "schema-compatibility": ("PUT", "schemaCompatibilityStrategy", lambda name: name),
    "schema-enforced": ("POST", "schemaValidationEnforced", lambda on: truth(on)),
    "schema-auto-update": ("POST", "isAllowAutoUpdateSchema", lambda on: truth(on)),
    "publish-rate": ("POST", "publishRate", lambda messages, size="-1": {
        "publishThrottlingRateInMsg": int(messages),
        "publishThrottlingRateInByte": int(size)}),
    "dispatch-rate": ("POST", "subscriptionDispatchRate", lambda messages, size="-1": {
        "dispatchThrottlingRateInMsg": int(messages),
        "dispatchThrottlingRateInByte": int(size), "ratePeriodInSecond": 1}),
    "max-unacked": ("POST", "maxUnackedMessagesPerConsumer", lambda count: int(count)),
    "max-consumers": ("POST", "maxConsumersPerSubscription", lambda count: int(count)),
    "max-producers": ("POST", "maxProducersPerTopic", lambda count: int(count)),
    "auto-create": ("POST", "autoTopicCreation", lambda on, partitions="0": {
        "allowAutoTopicCreation": truth(on), **({
            "topicType": "partitioned", "defaultNumPartitions": int(partitions)}
            if int(partitions) else {"topicType": "non-partitioned"})}),
}


class Failed(Exception):
    """What ends a command with a sentence instead of a traceback; `status` is HTTP's."""

    def __init__(self, text, status=0):
        super().__init__(text)
        self.status = status


def truth(text):
    if text not in ("true", "false"):
        raise Failed(f"{text} is neither true nor false")
    return text == "true"


def full_name(topic):
    if "://" not in topic:
        topic = "persistent://" + (topic if topic.count("/") == 2 else "public/default/" + topic)
    return topic


def topic_path(topic):
    kind, rest = full_name(topic).split("://", 1)
    tenant, namespace, name = rest.split("/", 2)
    return f"{kind}/{tenant}/{namespace}/{quoted(name)}"


def quoted(text):
    return urllib.parse.quote(text, safe="")


class Admin:
    """One broker's REST interface: every method answers its value or raises Failed."""

    def __init__(self, url=None, token_file=None, ca=None):
        self.url = (url or os.environ.get("PULSAR_ADMIN_URL") or "").rstrip("/")
        if not self.url:
            raise Failed("no broker: PULSAR_ADMIN_URL is not set")
        token_file = token_file or os.environ.get("PULSAR_ADMIN_TOKEN_FILE")
        self.headers = {"Content-Type": "application/json"}
        if token_file:
            with open(token_file) as file:
                self.headers["Authorization"] = "Bearer " + file.read().strip()
        ca = ca or os.environ.get("PULSAR_CA")
        self.tls = ssl.create_default_context(cafile=ca) if ca else None

    def call(self, method, path, body=None, timeout_s=WAIT_S):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/admin/v2/{path}", data, self.headers,
                                         method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout_s, context=self.tls) as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as refusal:
            raise Failed(reason_of(refusal), refusal.code) from None
        except OSError as failure:
            raise Failed(f"{method} {path}: {failure}") from None
        try:
            return json.loads(text) if text else None
        except ValueError:
            return text

    # --- topics -----------------------------------------------------------------------------

    def partitions(self, topic):
        """Returns the number of partitions; 0 = not partitioned, or absent."""
        return self.call("GET", topic_path(topic) + "/partitions")["partitions"]

    def each_partition(self, topic):
        count = self.partitions(topic)
        name = full_name(topic)
        return [f"{name}-partition-{i}" for i in range(count)] if count else [name]

    def create(self, topic, partitions=0):
        if partitions:
            self.call("PUT", topic_path(topic) + "/partitions", partitions)
        else:
            self.call("PUT", topic_path(topic))

    def grow(self, topic, partitions):
        """Raises the number of partitions; those are there, and loaded, when it returns."""
        self.call("POST", topic_path(topic) + "/partitions", partitions)
        for each in self.each_partition(topic):
            wait_for(f"partition {each}", lambda: self.exists(each))

    def exists(self, topic):
        try:
            self.call("GET", topic_path(topic) + "/stats")
        except Failed as failure:
            if failure.status == 404:
                return False
            raise
        return True

    def delete(self, topic):
        """Deletes a topic with all that hangs on it; one that is absent is fine."""
        try:
            path = topic_path(topic) + ("/partitions" if self.partitions(topic) else "")
            self.call("DELETE", path + "?force=true")
        except Failed as failure:
            if failure.status != 404:
                raise

    def stats(self, topic):
        kind = "/partitioned-stats?perPartition=true" if self.partitions(topic) else "/stats"
        return self.call("GET", topic_path(topic) + kind)

    def internal_stats(self, topic):
        return self.call("GET", topic_path(topic) + "/internalStats")

    def unload(self, topic):
        self.call("PUT", topic_path(topic) + "/unload")

    def terminate(self, topic):
        """Ends a topic and answers its last message id; of a partitioned one, one per partition."""
        if self.partitions(topic):
            return self.call("POST", topic_path(topic) + "/terminate/partitions")
        return self.call("POST", topic_path(topic) + "/terminate")

    def topics(self, namespace):
        return sorted(self.call("GET", f"persistent/{namespace}"))

    # --- subscriptions ----------------------------------------------------------------------

    def at(self, topic, subscription):
        return f"{topic_path(topic)}/subscription/{quoted(subscription)}"

    def subscribe(self, topic, subscription, position="earliest"):
        bound = -1 if position == "earliest" else 2**63 - 1
        body = {"ledgerId": bound, "entryId": bound, "partitionIndex": -1}
        self.call("PUT", self.at(topic, subscription), body)

    def unsubscribe(self, topic, subscription):
        self.call("DELETE", self.at(topic, subscription) + "?force=true")

    def subscriptions(self, topic):
        return sorted(self.call("GET", topic_path(topic) + "/subscriptions"))

    def skip(self, topic, subscription, count="all"):
        what = "skip_all" if count == "all" else f"skip/{int(count)}"
        self.call("POST", self.at(topic, subscription) + "/" + what)

    def backlog(self, topic, subscription):
        """Returns {"entries", "unacked"}, exact, summed over the partitions; a batch is one entry."""
        total = {"entries": 0, "unacked": 0}
        for each in self.each_partition(topic):
            path = topic_path(each) + "/stats?getPreciseBacklog=true"
            found = self.call("GET", path)["subscriptions"].get(subscription)
            if found is None:
                raise Failed(f"{each} has no subscription {subscription}", 404)
            total["entries"] += found["msgBacklog"]
            total["unacked"] += found["unackedMessages"]
        return total

    # --- namespaces -------------------------------------------------------------------------

    def create_namespace(self, namespace):
        self.call("PUT", f"namespaces/{namespace}", {"bundles": {"numBundles": 4}})

    def policy(self, namespace, name, *values):
        method, path, body = POLICIES[name]
        try:
            value = body(*values)
        except (TypeError, ValueError) as fault:
            raise Failed(f"{name}: {fault}") from None
        self.call(method, f"namespaces/{namespace}/{path}", value)

    def grant(self, namespace, role, actions):
        self.call("POST", f"namespaces/{namespace}/permissions/{quoted(role)}", actions)

    def check_ready(self):
        """Raises Failed until the broker serves: its port accepts half a second earlier."""
        health = self.call("GET", "brokers/health", timeout_s=10)
        if health != "ok":
            raise Failed(f"health: {health}")
        if "public/default" not in self.call("GET", "namespaces/public", timeout_s=10):
            raise Failed("there is no namespace public/default yet")


def reason_of(refusal):
    text = refusal.read().decode(errors="replace")
    try:
        text = json.loads(text).get("reason") or text
    except (ValueError, AttributeError):
        pass
    return f"{refusal.code}: {text.strip()[:400] or refusal.reason}"


def wait_for(what, is_done):
    until = time.monotonic() + WAIT_S
    while not is_done():
        if time.monotonic() > until:
            raise Failed(f"{what}: not within {WAIT_S} s")
        time.sleep(0.05)


# --- the command line -----------------------------------------------------------------------


def do_raw(admin, method, path, body=None):
    """METHOD PATH [JSON]: any other call below /admin/v2/"""
    return admin.call(method, path, None if body is None else json.loads(body))


def do_backlog(admin, topic, subscription, wait_s=None):
    """TOPIC SUBSCRIPTION [S]: with S, waits that long until none is left, else fails"""
    if wait_s is not None:
        until = time.monotonic() + float(wait_s)
        while admin.backlog(topic, subscription)["entries"] and time.monotonic() < until:
            time.sleep(0.1)
    found = admin.backlog(topic, subscription)
    if wait_s is not None and found["entries"]:
        raise Failed(f"a backlog of {found['entries']} is left after {wait_s} s")
    return found


# VERB: (function, the names of its arguments; those in brackets may be left out)
VERBS = {
    "create": (lambda a, t, n="0": a.create(t, int(n)), "TOPIC [PARTITIONS]"),
    "grow": (lambda a, t, n: a.grow(t, int(n)), "TOPIC PARTITIONS"),
    "delete": (lambda a, *topics: [a.delete(t) for t in topics] and None, "TOPIC..."),
    "partitions": (Admin.partitions, "TOPIC"),
    "stats": (Admin.stats, "TOPIC"),
    "internal-stats": (Admin.internal_stats, "TOPIC"),
    "unload": (Admin.unload, "TOPIC"),
    "terminate": (Admin.terminate, "TOPIC"),
    "list": (lambda a, namespace="public/default": a.topics(namespace), "[NAMESPACE]"),
    "subscriptions": (Admin.subscriptions, "TOPIC"),
    "subscribe": (Admin.subscribe, "TOPIC SUBSCRIPTION [earliest|latest]"),
    "unsubscribe": (Admin.unsubscribe, "TOPIC SUBSCRIPTION"),
    "backlog": (do_backlog, "TOPIC SUBSCRIPTION [WAIT_S]"),
    "skip": (Admin.skip, "TOPIC SUBSCRIPTION [COUNT|all]"),
    "namespace": (Admin.create_namespace, "NAMESPACE"),
    "delete-namespace": (lambda a, n: a.call("DELETE", f"namespaces/{n}?force=true"),
                         "NAMESPACE"),
    "unload-namespace": (lambda a, n: a.call("PUT", f"namespaces/{n}/unload"), "NAMESPACE"),
    "policies": (lambda a, n: a.call("GET", f"namespaces/{n}"), "NAMESPACE"),
    "set": (Admin.policy, "NAMESPACE POLICY VALUE..."),
    "grant": (lambda a, n, role, *actions: a.grant(n, role, actions),
              "NAMESPACE ROLE produce|consume..."),
    "schema": (lambda a, t, text: a.call(
        "POST", "schemas/" + topic_path(t).split("/", 1)[1] + "/schema", json.loads(text)),
        "TOPIC JSON"),
    "ready": (Admin.check_ready, ""),
    "raw": (do_raw, "METHOD PATH [JSON]"),
}


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="verbs:\n" + "\n".join(f"  {verb} {names}" for verb, (_, names) in VERBS.items())
        + "\npolicies of `set`: " + ", ".join(POLICIES))
    parser.add_argument("verb", choices=VERBS, metavar="VERB")
    parser.add_argument("values", nargs="*", metavar="ARG")
    options = parser.parse_args()
    names = VERBS[options.verb][1].split()
    least = len([name for name in names if name[0] != "["])
    most = sys.maxsize if names and names[-1].endswith("...") else len(names)
    if not least <= len(options.values) <= most:
        parser.error(f"{options.verb} takes {VERBS[options.verb][1] or 'nothing'}")
    if options.verb == "set" and options.values[1] not in POLICIES:
        parser.error(f"there is no policy {options.values[1]}, but " + ", ".join(POLICIES))
    return options


def main():
    options = arguments()
    try:
        found = VERBS[options.verb][0](Admin(), *options.values)
    except (Failed, ValueError) as failure:
        print(f"pulsar_admin: {failure}", file=sys.stderr)
        return 1
    if found is not None:
        print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
