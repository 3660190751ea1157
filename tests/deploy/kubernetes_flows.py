"""Which pod may reach which port, by the rules of Kubernetes' NetworkPolicy."""
import collections
import itertools

from kubernetes_objects import COORDINATOR, SERVER, STAGE, of_kind

NAMESPACE = "thinwire"
Peer = collections.namedtuple("Peer", "namespace labels")
PORTS = [("TCP", 4600), ("TCP", 4700), ("TCP", 9700), ("TCP", 53), ("UDP", 53), ("TCP", 443)]


def peers(objects):
    """Everybody who may be there: the pods of the objects, those they deal with, and strangers."""
    steers = objects.get(COORDINATOR) or objects[SERVER]
    coordinator = steers["spec"]["template"]["metadata"]["labels"]
    return {
        "stage": Peer(NAMESPACE, objects[STAGE]["spec"]["template"]["metadata"]["labels"]),
        "coordinator": Peer(NAMESPACE, coordinator),
        "results": Peer(
            NAMESPACE, objects["Deployment", "results"]["spec"]["template"]["metadata"]["labels"]),
        "prometheus": Peer("monitoring", {"app.kubernetes.io/name": "prometheus"}),
        "dns": Peer("kube-system", {"k8s-app": "kube-dns"}),
        "stranger in the namespace": Peer(NAMESPACE, {"app.kubernetes.io/name": "stranger"}),
        "coordinator elsewhere": Peer("default", coordinator),
        "prometheus elsewhere": Peer("default", {"app.kubernetes.io/name": "prometheus"}),
        "stranger in monitoring": Peer("monitoring", {"app.kubernetes.io/name": "grafana"}),
    }


def selects(selector, labels):
    """Whether a label selector takes the labels."""
    for expression in selector.get("matchExpressions", []):
        if expression["operator"] != "In":
            raise ValueError(f"operator {expression['operator']}, want In")
        if labels.get(expression["key"]) not in expression["values"]:
            return False
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())


def _is_peer(rule, peer):
    """Whether an entry of `from` or `to` means this pod; addresses mean none."""
    if "ipBlock" in rule:
        return False
    if "namespaceSelector" in rule:
        its_namespace = {"kubernetes.io/metadata.name": peer.namespace}
        if not selects(rule["namespaceSelector"], its_namespace):
            return False
    elif peer.namespace != NAMESPACE:
        return False
    return selects(rule.get("podSelector", {}), peer.labels)


def _passes(policies, kind, whose, other, port):
    """Whether the policies let `whose` talk to `other`, as seen from its end."""
    of_end = [policy["spec"] for policy in policies
              if whose.namespace == NAMESPACE and kind in policy["spec"]["policyTypes"]
              and selects(policy["spec"]["podSelector"], whose.labels)]
    if not of_end:
        return True
    ends, rules = {"Ingress": ("from", "ingress"), "Egress": ("to", "egress")}[kind]
    for rule in itertools.chain.from_iterable(spec.get(rules, []) for spec in of_end):
        whom = rule.get(ends)
        ports = [(entry["protocol"], entry["port"]) for entry in rule.get("ports", [])]
        if (not whom or any(_is_peer(entry, other) for entry in whom)) and (
                not ports or port in ports):
            return True
    return False


def flows(objects):
    """The set of (from, to, protocol, port) that pass, of those that begin or end at our pods."""
    policies = of_kind(objects, "NetworkPolicy")
    everybody = peers(objects)
    return {
        (source, target, *port)
        for (source, sender), (target, receiver) in itertools.product(everybody.items(), repeat=2)
        for port in PORTS
        if NAMESPACE in (sender.namespace, receiver.namespace)
        and _passes(policies, "Egress", sender, receiver, port)
        and _passes(policies, "Ingress", receiver, sender, port)
    }


WANTED = {
    ("coordinator", "stage", "TCP", 4700),
    ("stage", "stage", "TCP", 4700),
    ("prometheus", "stage", "TCP", 9700),
    ("prometheus", "coordinator", "TCP", 9700),
    ("coordinator", "dns", "TCP", 53),
    ("coordinator", "dns", "UDP", 53),
    ("stage", "dns", "TCP", 53),
    ("stage", "dns", "UDP", 53),
}
