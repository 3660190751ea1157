"""The objects that a kustomize overlay makes, by kind and name."""
import copy
import subprocess

import yaml

ABSENT = object()
POD = ("spec", "template", "spec")
CONTAINER = POD + ("containers", 0)
STAGE = ("StatefulSet", "stage")
COORDINATOR = ("Job", "coordinator")
SERVER = ("Deployment", "server")


def render(kubectl, overlay):
    """(kind, name) -> object of all that `kubectl kustomize` makes of the folder `overlay`.

    kubectl may call fields of the kustomization deprecated; another word on stderr is an error.
    """
    done = subprocess.run(
        [kubectl, "kustomize", str(overlay)], capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if "is deprecated." not in line]
    if done.returncode != 0 or said:
        raise RuntimeError(f"{kubectl} kustomize {overlay}: exit {done.returncode}: {said}")
    return {(made["kind"], made["metadata"]["name"]): made
            for made in yaml.safe_load_all(done.stdout)}


def of_kind(objects, kind):
    """The objects of one kind."""
    return [made for (its_kind, _), made in objects.items() if its_kind == kind]


def pod_templates(objects):
    """(where, template) of each object that makes pods."""
    for (kind, name), made in objects.items():
        if kind in ("StatefulSet", "Job", "Deployment"):
            yield f"{kind} {name}", made["spec"]["template"]


def containers(objects):
    """(where, pod, container) of each container of each pod."""
    for where, template in pod_templates(objects):
        pod = template["spec"]
        for group in ("initContainers", "containers"):
            for container in pod.get(group, []):
                yield f"{where}, container {container['name']}", pod, container


def flag(container, name):
    """The value of a flag among the container's arguments, None where it is not given."""
    args = container.get("args", [])
    return args[args.index(name) + 1] if name in args else None


def job_answer(job, exit_code, is_disrupted=False):
    """What a Job does about a pod that failed: Ignore (another one), Count (another one, as often
    as backoffLimit says) or FailJob. The first rule that fits decides, as in the job controller.

    `is_disrupted`: the cluster took the pod away.
    """
    for rule in job.get("podFailurePolicy", {}).get("rules", []):
        conditions = [condition["type"] for condition in rule.get("onPodConditions") or []
                      if condition.get("status", "True") == "True"]
        codes = rule.get("onExitCodes", {"operator": "In", "values": []})
        is_named = exit_code in codes["values"]
        if (is_disrupted and "DisruptionTarget" in conditions) or (
                is_named == (codes["operator"] == "In")):
            return rule["action"]
    return "Count"


def changed(objects, whose, path, value):
    """A copy of the objects in which the field of one of them is `value`, or ABSENT."""
    made = copy.deepcopy(objects)
    owner = made[whose]
    for key in path[:-1]:
        owner = owner[key]
    if value is ABSENT:
        del owner[path[-1]]
    else:
        owner[path[-1]] = value
    return made
