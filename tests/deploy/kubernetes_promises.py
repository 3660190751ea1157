"""What the manifests promise. Each promise is a function from the objects of an overlay to its
complaints, none where it is kept."""
import json
import re

import yaml

import kubernetes_flows
from kubernetes_flows import selects
from kubernetes_objects import (
    COORDINATOR, SERVER, STAGE, containers, flag, job_answer, of_kind, pod_templates)

PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
# Volumes that the restricted Pod Security Standard allows.
VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim",
           "projected", "secret"}
# What each program shows, and where it is in a Secret of type kubernetes.io/tls.
CERTIFICATES = {"--tls_cert": "tls.crt", "--tls_key": "tls.key", "--tls_ca": "ca.crt"}
ROLES = {"StatefulSet stage": "stage", "Job coordinator": "coordinator",
         "Deployment server": "coordinator"}


def _port_of(container, name):
    """The number of a container's port by its name, None where there is no such port."""
    return next((port["containerPort"] for port in container.get("ports", [])
                 if port["name"] == name), None)


def probes_ask_the_pod_itself(objects):
    """A stage has all probes; each asks its own /healthz, where the program serves it."""
    for where, _, container in containers(objects):
        for probe in PROBES:
            if probe not in container:
                if where.startswith("StatefulSet"):
                    yield f"{where}: no {probe}"
                continue
            http = container[probe].get("httpGet", {})
            if http.get("path") != "/healthz" or "host" in http:
                yield f"{where}: {probe} asks {http}, want /healthz of the pod itself"
            if _port_of(container, http.get("port")) is None:
                yield f"{where}: {probe}: no port has the name '{http.get('port')}'"


def ports_are_those_listened_at(objects):
    """The container's ports are those of the program's flags, and services lead to them."""
    for where, _, container in containers(objects):
        for name, its_flag in (("grpc", "--listen"), ("metrics", "--metrics_listen")):
            address = flag(container, its_flag)
            wanted = None if address is None else f"0.0.0.0:{_port_of(container, name)}"
            if address != wanted:
                yield f"{where}: {its_flag} {address}, want {wanted}, as port {name} says"
    for service in of_kind(objects, "Service"):
        for port in service["spec"]["ports"]:
            for where, template in pod_templates(objects):
                container = template["spec"]["containers"][0]
                if selects({"matchLabels": service["spec"]["selector"]},
                           template["metadata"]["labels"]) and (
                               _port_of(container, port["targetPort"]) != port["port"]):
                    yield f"Service {service['metadata']['name']}: port {port} is not {where}'s"


def mounts_have_volumes(objects):
    """Each mount has a volume, each volume a mount, and claims and ConfigMaps are there."""
    for where, template in pod_templates(objects):
        pod = template["spec"]
        volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
        owner = objects[tuple(where.split(" "))]
        claimed = {claim["metadata"]["name"]
                   for claim in owner["spec"].get("volumeClaimTemplates", [])}
        mounted = {mount["name"] for container in pod["containers"]
                   for mount in container.get("volumeMounts", [])}
        for name in mounted ^ (set(volumes) | claimed):
            yield f"{where}: '{name}' is not both mounted and a volume"
        for volume in volumes.values():
            claim = volume.get("persistentVolumeClaim", {}).get("claimName")
            if claim and ("PersistentVolumeClaim", claim) not in objects:
                yield f"{where}: no PersistentVolumeClaim {claim}"
            config = volume.get("configMap", {}).get("name")
            if config and ("ConfigMap", config) not in objects:
                yield f"{where}: no ConfigMap {config}"


def the_experiment_is_mounted(objects):
    """The file that the coordinator runs is a key of the ConfigMap; results go to a volume."""
    pod = objects[COORDINATOR]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    folder, _, key = container["args"][2].rpartition("/")
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    config = volumes.get(mounts.get(folder), {}).get("configMap", {}).get("name")
    if key not in objects.get(("ConfigMap", config), {}).get("data", {}):
        yield f"Job coordinator: {container['args'][2]} is not in a ConfigMap that is mounted"
    if container.get("workingDir") != "/" or "/runs" not in mounts:
        yield "Job coordinator: runs/NAME below workingDir is not in a volume"


def _secrets(objects):
    """The keys of each Secret by its name, of those that cert-manager makes too."""
    keys = {made["metadata"]["name"]: set(made["data"]) for made in of_kind(objects, "Secret")}
    return keys | {made["spec"]["secretName"]: set(CERTIFICATES.values())
                   for made in of_kind(objects, "Certificate")}


def programs_show_certificates(objects):
    """Stages and coordinator want and show certificates, which a Secret has."""
    secrets = _secrets(objects)
    for where, pod, container in containers(objects):
        if "--insecure" in container["args"]:
            yield f"{where}: --insecure"
        if where.partition(",")[0] not in ROLES:
            continue
        volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
        mounts = {mount["mountPath"]: volumes.get(mount["name"], {})
                  for mount in container["volumeMounts"] if mount.get("readOnly")}
        for its_flag, key in CERTIFICATES.items():
            folder, _, name = (flag(container, its_flag) or "").rpartition("/")
            secret = mounts.get(folder, {}).get("secret", {}).get("secretName")
            if name != key or key not in secrets.get(secret, set()):
                yield f"{where}: {its_flag} {folder}/{name} is not {key} of a mounted Secret"


def pods_have_the_keys_of_their_role(objects):
    """No pod can read the key of another role, or that of the authority."""
    for where, template in pod_templates(objects):
        mounted = [volume["secret"]["secretName"] for volume in template["spec"].get("volumes", [])
                   if "secret" in volume]
        if mounted != ([f"{ROLES[where]}-tls"] if where in ROLES else []):
            yield f"{where}: Secrets {mounted}, want that of its role"
    for made in of_kind(objects, "Secret"):
        if set(made["data"]) != set(CERTIFICATES.values()):
            yield f"Secret {made['metadata']['name']}: {sorted(made['data'])}, want {CERTIFICATES}"


def _stages_of(experiment):
    """The number of stages of an experiment whose cuts are a list."""
    pipeline = experiment["pipeline"]
    return pipeline.get("stages", len(pipeline["cuts"]) + 1)


def stages_are_found(objects):
    """The coordinator's addresses are the pods' stable names, and there are enough of them."""
    stateful = objects[STAGE]["spec"]
    service = objects.get(("Service", stateful["serviceName"]), {"spec": {}})["spec"]
    if service.get("clusterIP") != "None":
        yield f"StatefulSet stage: no headless service {stateful['serviceName']}"
    if not service.get("publishNotReadyAddresses"):
        yield "a stage that is not ready has no name: want publishNotReadyAddresses"
    if stateful.get("podManagementPolicy") != "Parallel":
        yield "stages start one after the other: want podManagementPolicy: Parallel"
    port = _port_of(stateful["template"]["spec"]["containers"][0], "grpc")
    wanted = f"stage-{{0..}}.{stateful['serviceName']}:{port}"
    coordinator = objects[COORDINATOR]["spec"]["template"]["spec"]["containers"][0]
    if flag(coordinator, "--stages") != wanted:
        yield f"Job coordinator: --stages {flag(coordinator, '--stages')}, want {wanted}"
    experiment = yaml.safe_load(objects["ConfigMap", "experiment"]["data"]["experiment.yaml"])
    carriers = int(flag(coordinator, "--carriers") or 1)
    if carriers > experiment.get("replicas", {}).get("count", 1):
        yield f"Job coordinator: --carriers {carriers}, the experiment has fewer replicas"
    if stateful["replicas"] != carriers * _stages_of(experiment):
        yield (f"StatefulSet stage: {stateful['replicas']} replicas, the experiment has "
               f"{_stages_of(experiment)} stages in each of {carriers} pipelines")
    if re.search(r"stage-\d", json.dumps([made for (kind, _), made in objects.items()
                                          if kind != "ConfigMap"])):
        yield "the number of stages stands in another place than replicas"


def selectors_match(objects):
    """Each selector of a controller, a service, a budget or a spread takes the pods it is for."""
    templates = {where: template["metadata"]["labels"]
                 for where, template in pod_templates(objects)}
    for where, template in pod_templates(objects):
        own = objects[tuple(where.split(" "))]["spec"].get("selector")
        spreads = [spread["labelSelector"]
                   for spread in template["spec"].get("topologySpreadConstraints", [])]
        for selector in ([own] if own else []) + spreads:
            if [taken for taken, labels in templates.items()
                    if selects(selector, labels)] != [where]:
                yield f"{where}: {selector} does not select its pods, or others too"
    for kind in ("Service", "PodDisruptionBudget"):
        for made in of_kind(objects, kind):
            selector = made["spec"]["selector"]
            if kind == "Service":
                selector = {"matchLabels": selector}
            if len([1 for labels in templates.values() if selects(selector, labels)]) != 1:
                yield (f"{kind} {made['metadata']['name']}: {selector} does not select "
                       "one kind of pod")


def _pod_is_restricted(where, pod):
    context = pod.get("securityContext", {})
    if not context.get("runAsNonRoot") or not context.get("runAsUser"):
        yield f"{where}: want runAsNonRoot and the number of a user"
    if context.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"):
        yield f"{where}: want seccompProfile RuntimeDefault"
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(field):
            yield f"{where}: {field}"
    for volume in pod.get("volumes", []):
        if not VOLUMES & set(volume):
            yield f"{where}: volume {volume} is of a kind that the standard forbids"


def _container_is_restricted(where, container):
    context = container.get("securityContext", {})
    if context.get("allowPrivilegeEscalation") is not False or context.get("privileged"):
        yield f"{where}: want allowPrivilegeEscalation: false, and no privileges"
    capabilities = context.get("capabilities", {})
    if "ALL" not in capabilities.get("drop", []) or capabilities.get("add"):
        yield f"{where}: want capabilities dropped: ALL, and none added"
    if not context.get("readOnlyRootFilesystem"):
        yield f"{where}: want readOnlyRootFilesystem"
    for field in ("runAsUser", "runAsNonRoot", "seccompProfile"):
        if field in context:
            yield f"{where}: {field} overrides the pod's"
    if any("hostPort" in port for port in container.get("ports", [])):
        yield f"{where}: hostPort"


def pods_are_restricted(objects):
    """The restricted Pod Security Standard, and a root file system that is read only."""
    labels = objects["Namespace", "thinwire"]["metadata"].get("labels", {})
    if labels.get("pod-security.kubernetes.io/enforce") != "restricted":
        yield "Namespace thinwire: does not enforce the restricted standard"
    for where, template in pod_templates(objects):
        yield from _pod_is_restricted(where, template["spec"])
    for where, _, container in containers(objects):
        yield from _container_is_restricted(where, container)


def pods_have_no_token(objects):
    """No pod gets a service account's token, or the addresses of services in its environment."""
    for where, template in pod_templates(objects):
        pod = template["spec"]
        account = objects.get(("ServiceAccount", pod.get("serviceAccountName")), {})
        if pod.get("automountServiceAccountToken") is not False or (
                account.get("automountServiceAccountToken") is not False):
            yield f"{where}: want automountServiceAccountToken: false of the pod and its account"
        if pod.get("enableServiceLinks") is not False:
            yield f"{where}: want enableServiceLinks: false"


def images_are_pinned(objects):
    """One image, with a version."""
    images = {container["image"] for _, _, container in containers(objects)}
    if len(images) != 1:
        yield f"images {sorted(images)}: programs of one run want one build"
    for image in images:
        if not re.fullmatch(r".+/.+(:(?!latest$)[\w.-]+|@sha256:[0-9a-f]{64})", image):
            yield f"image {image}: want a registry and a version"


def resources_are_known(objects):
    """Each container says what it takes, and has a limit of memory."""
    for where, _, container in containers(objects):
        resources = container.get("resources", {})
        if not {"cpu", "memory"} <= set(resources.get("requests", {})) or (
                "memory" not in resources.get("limits", {})):
            yield f"{where}: want requests of cpu and memory, and a limit of memory"


# How a coordinator may end, whether the cluster took its pod away, and what the Job is to do:
# 1 the run failed, 2 the program refused it, 130 interrupted, 137 killed, 143 ended by SIGTERM.
ENDS = [
    (1, False, "FailJob"), (2, False, "FailJob"),
    (130, False, "Count"), (137, False, "Count"), (139, False, "Count"), (143, False, "Count"),
    (1, True, "Ignore"), (130, True, "Ignore"), (137, True, "Ignore"), (143, True, "Ignore"),
]
# A pod that ends by itself again and again, out of memory for instance, is not tried for ever.
MOST_TRIES = 6


def a_lost_run_goes_on(objects):
    """A coordinator that is lost is followed by another, which goes on with the run; no eviction
    interrupts one."""
    spec = objects[COORDINATOR]["spec"]
    pod = spec["template"]["spec"]
    if "--resume" not in pod["containers"][0]["args"]:
        yield "Job coordinator: a second pod would be refused: want --resume"
    if spec.get("backoffLimit", 0) < 1:
        yield f"Job coordinator: backoffLimit {spec.get('backoffLimit')}, want another try"
    for code, is_disrupted, wanted in ENDS:
        answer = job_answer(spec, code, is_disrupted)
        if answer != wanted and wanted != "FailJob":
            yield (f"Job coordinator: exit {code}, {'disrupted' if is_disrupted else 'by itself'}: "
                   f"{answer}, want {wanted}")
    budgets = {made["metadata"]["name"]: made["spec"]
               for made in of_kind(objects, "PodDisruptionBudget")}
    if budgets.get("stage", {}).get("maxUnavailable") != 0:
        yield "PodDisruptionBudget stage: want maxUnavailable: 0"
    if budgets.get("coordinator", {}).get("minAvailable") != 1:
        yield "PodDisruptionBudget coordinator: want minAvailable: 1"


def a_failed_run_stays_failed(objects):
    """A run that fails or is refused is not tried again, and nothing is tried for ever."""
    spec = objects[COORDINATOR]["spec"]
    pod = spec["template"]["spec"]
    for code, is_disrupted, wanted in ENDS:
        answer = job_answer(spec, code, is_disrupted)
        if answer != wanted and wanted == "FailJob":
            yield f"Job coordinator: exit {code} is tried again: {answer}, want {wanted}"
    for rule in spec.get("podFailurePolicy", {}).get("rules", []):
        named = rule.get("onExitCodes", {}).get("containerName")
        if named not in (None, *(container["name"] for container in pod["containers"])):
            yield f"Job coordinator: a rule for the container {named}, which is not there"
    if not 0 <= spec.get("backoffLimit", MOST_TRIES + 1) <= MOST_TRIES:
        yield f"Job coordinator: backoffLimit {spec.get('backoffLimit')}, want at most {MOST_TRIES}"
    if pod.get("restartPolicy") != "Never":
        yield "Job coordinator: want restartPolicy: Never"
    if "ttlSecondsAfterFinished" in spec:
        yield "Job coordinator: ttlSecondsAfterFinished lets a deleted Job be applied and run again"


def only_what_training_needs_passes(objects):
    """The network policies let exactly the wanted flows through."""
    passing = kubernetes_flows.flows(objects)
    for flow in sorted(passing - kubernetes_flows.WANTED):
        yield f"passes and should not: {flow}"
    for flow in sorted(kubernetes_flows.WANTED - passing):
        yield f"does not pass: {flow}"


def a_lost_server_goes_on(objects):
    """One server, whose queue is in a claim, is followed by another only when it has gone."""
    spec = objects[SERVER]["spec"]
    pod = spec["template"]["spec"]
    if spec["replicas"] != 1 or spec["strategy"] != {"type": "Recreate"}:
        yield "Deployment server: want one replica, and strategy Recreate"
    claims = {volume["name"] for volume in pod["volumes"] if "persistentVolumeClaim" in volume}
    folder = next((mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]
                   if mount["name"] in claims), None)
    out = flag(pod["containers"][0], "--out") or ""
    if folder is None or not out.startswith(f"{folder}/"):
        yield f"Deployment server: --out {out} is not below a claim"
    stages = objects[STAGE]["spec"]
    port = _port_of(stages["template"]["spec"]["containers"][0], "grpc")
    wanted = f"stage-{{0..}}.{stages['serviceName']}:{port}"
    if flag(pod["containers"][0], "--stages") != wanted:
        yield f"Deployment server: --stages is not {wanted}"
    if COORDINATOR in objects or ("PodDisruptionBudget", "coordinator") in objects:
        yield "Job coordinator: would take the server's stages"


# Of an overlay with a server in the Job's place.
SERVER_PROMISES = [
    probes_ask_the_pod_itself, ports_are_those_listened_at, mounts_have_volumes,
    programs_show_certificates, pods_have_the_keys_of_their_role, selectors_match,
    pods_are_restricted, pods_have_no_token, images_are_pinned, resources_are_known,
    a_lost_server_goes_on, only_what_training_needs_passes,
]

PROMISES = [
    probes_ask_the_pod_itself, ports_are_those_listened_at, mounts_have_volumes,
    the_experiment_is_mounted, programs_show_certificates,
    pods_have_the_keys_of_their_role, stages_are_found, selectors_match, pods_are_restricted,
    pods_have_no_token, images_are_pinned, resources_are_known, a_lost_run_goes_on,
    a_failed_run_stays_failed, only_what_training_needs_passes,
]


def complaints(objects):
    """All complaints of all promises."""
    promises = SERVER_PROMISES if SERVER in objects else PROMISES
    return [complaint for promise in promises for complaint in promise(objects)]
