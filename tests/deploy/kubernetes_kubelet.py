"""As much of a kubelet as the manifests of deploy/k8s ask for, over podman.

A pod is started as its rendered spec says: arguments, environment, working directory, volumes,
security context, hostname, and the name that the headless service gives it. Probes are asked over
HTTP from outside of the pod. What Kubernetes would refuse raises PodError in its words.
"""
import base64
import contextlib
import http.client
import json
import os
import pathlib
import subprocess
import time

NETWORK = "thinwire-pods"
CONTAINERS_CONF = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=20000:20000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
"""
STORAGE_CONF = """
[storage]
driver = "vfs"
runroot = "{folder}/run"
graphroot = "{folder}/storage"
"""


class PodError(Exception):
    """A pod that does not start, or is not healthy."""


class Pod:
    """A pod that runs, or has ended."""

    def __init__(self, node, name, container):
        self._node, self.name, self.container = node, name, container

    def _inspect(self):
        return json.loads(self._node.podman("inspect", self.name))[0]

    def address(self):
        """Its IPv4 address."""
        return self._inspect()["NetworkSettings"]["Networks"][NETWORK]["IPAddress"]

    def status(self):
        """What the kernel says of its first process: /proc/PID/status by field, and its mounts."""
        process = pathlib.Path("/proc", str(self._inspect()["State"]["Pid"]))
        lines = (process / "status").read_text(encoding="utf-8").splitlines()
        fields = {name: value.strip() for name, value in (line.split(":", 1) for line in lines)}
        mounts = {line.split()[4]: line.split()[5].split(",")
                  for line in (process / "mountinfo").read_text(encoding="utf-8").splitlines()}
        return fields, mounts

    def probe(self, kind):
        """Asks a probe once; PodError says what came instead of an answer below 400."""
        http_get = self.container[kind]["httpGet"]
        ports = {port["name"]: port["containerPort"] for port in self.container.get("ports", [])}
        if http_get["port"] not in ports:
            raise PodError(f"{kind}: couldn't find port \"{http_get['port']}\" in the container")
        where = f"http://{self.address()}:{ports[http_get['port']]}{http_get['path']}"
        connection = http.client.HTTPConnection(
            self.address(), ports[http_get["port"]],
            timeout=self.container[kind].get("timeoutSeconds", 1))
        with contextlib.closing(connection):
            try:
                connection.request("GET", http_get["path"])
                status = connection.getresponse().status
            except OSError as error:
                raise PodError(f"{kind}: {where}: {error}") from error
        if status >= 400:
            raise PodError(f"{kind}: {where}: HTTP {status}")

    def await_start(self):
        """Asks the startup probe as often as it says, and the others once it is through."""
        probe = self.container["startupProbe"]
        for attempt in range(probe["failureThreshold"]):
            try:
                self.probe("startupProbe")
                break
            except PodError:
                if attempt + 1 == probe["failureThreshold"] or not self.running():
                    raise
            time.sleep(probe["periodSeconds"])
        self.probe("readinessProbe")
        self.probe("livenessProbe")

    def running(self):
        """Whether its container runs."""
        return self._inspect()["State"]["Running"]

    def wait(self, seconds):
        """The exit code of a container that ends by itself in time."""
        end = time.monotonic() + seconds
        while self.running():
            if time.monotonic() > end:
                raise PodError(f"{self.name} has not ended after {seconds} s: {self.log()}")
            time.sleep(0.2)
        return self._inspect()["State"]["ExitCode"]

    def log(self):
        """What it has written."""
        return self._node.podman("logs", self.name)

    def stop(self, grace_seconds):
        """Ends it by SIGTERM, and by SIGKILL after the grace; returns its exit code."""
        self._node.podman("stop", "--time", str(grace_seconds), self.name)
        return self._inspect()["State"]["ExitCode"]

    def restart(self):
        """Starts its container again, in the same pod, and asks its probes; PodError if it runs."""
        if self.running():
            raise PodError(f"{self.name} runs")
        self._node.podman("start", self.name)
        self.await_start()

    def remove(self):
        """Ends it at once."""
        self._node.podman("rm", "--force", "--time", "0", self.name)


class Node:
    """A machine for pods, whose containers, volumes and network are its own and go with it."""

    def __init__(self, folder):
        self._folder = pathlib.Path(folder)
        self.image = None
        self._mounted = []
        (self._folder / "containers.conf").write_text(CONTAINERS_CONF, encoding="utf-8")
        (self._folder / "storage.conf").write_text(
            STORAGE_CONF.format(folder=self._folder), encoding="utf-8")
        self.environment = dict(
            os.environ,
            CONTAINERS_CONF=str(self._folder / "containers.conf"),
            CONTAINERS_STORAGE_CONF=str(self._folder / "storage.conf"))

    def podman(self, *arguments):
        """What podman says, on both streams; PodError if it fails."""
        done = subprocess.run(["podman", *arguments], env=self.environment, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise PodError(f"podman {arguments[0]}: {done.stdout.strip()}")
        return done.stdout

    def __enter__(self):
        self.podman("network", "create", NETWORK)
        return self

    def __exit__(self, *_):
        self.podman("rm", "--all", "--force", "--time", "0")
        self.podman("network", "rm", NETWORK)
        self.podman("rmi", "--all", "--force")
        for folder in self._mounted:
            subprocess.run(["umount", folder], check=True)

    def kill(self, *pods):
        """Ends pods by SIGKILL, all at once; returns when it had, in seconds since 1970."""
        self.podman("kill", "--signal", "KILL", *(pod.name for pod in pods))
        now = time.time()
        end = time.monotonic() + 10
        while any(pod.running() for pod in pods):
            if time.monotonic() > end:
                raise PodError(f"{[pod.name for pod in pods]} do not end")
            time.sleep(0.05)
        return now

    def _folder_of_group(self, name, pod, mode):
        """A folder on this machine that the pods' group may write to, as fsGroup says."""
        folder = self._folder / name
        if not folder.exists():
            folder.mkdir(parents=True)
            os.chown(folder, 0, pod["securityContext"]["fsGroup"])
            folder.chmod(mode)
        return folder

    def claim(self, name, pod):
        """The folder of a claim."""
        return self._folder_of_group(f"claims/{name}", pod, 0o2775)

    def small_claim(self, name, pod, size):
        """A claim of a volume of `size`, as mount says it (16k)."""
        folder = self._folder / "claims" / name
        folder.mkdir(parents=True)
        group = pod["securityContext"]["fsGroup"]
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},gid={group},mode=2775", "tmpfs",
                        folder], check=True)
        self._mounted.append(folder)

    def _config_map(self, objects, name):
        if ("ConfigMap", name) not in objects:
            raise PodError(f'MountVolume.SetUp failed: configmap "{name}" not found')
        folder = self._folder / "config_maps" / str(time.monotonic_ns())
        folder.mkdir(parents=True)
        for key, text in objects["ConfigMap", name]["data"].items():
            (folder / key).write_text(text, encoding="utf-8")
        return folder

    def _secret(self, objects, pod, source):
        name = source["secretName"]
        if ("Secret", name) not in objects:
            raise PodError(f'MountVolume.SetUp failed: secret "{name}" not found')
        folder = self._folder_of_group(f"secrets/{time.monotonic_ns()}", pod, 0o2755)
        for key, text in objects["Secret", name]["data"].items():
            path = folder / key
            path.write_bytes(base64.b64decode(text))
            os.chown(path, 0, pod["securityContext"]["fsGroup"])
            path.chmod(source["defaultMode"])
        return folder

    def _mount(self, objects, pod, mount, volume):
        """podman's flags for one mount of one volume."""
        mode = "ro" if mount.get("readOnly") else "rw"
        if "emptyDir" in volume:
            name = f"empty/{time.monotonic_ns()}"
            folder = self._folder_of_group(name, pod, 0o2777)
        elif "configMap" in volume:
            folder, mode = self._config_map(objects, volume["configMap"]["name"]), "ro"
        elif "secret" in volume:
            folder, mode = self._secret(objects, pod, volume["secret"]), "ro"
        else:
            folder = self.claim(volume["persistentVolumeClaim"]["claimName"], pod)
        return ["--volume", f"{folder}:{mount['mountPath']}:{mode}"]

    def _security(self, pod, container):
        """podman's flags for both security contexts."""
        of_pod, own = pod.get("securityContext", {}), container.get("securityContext", {})
        user = of_pod.get("runAsUser", 0)
        if of_pod.get("runAsNonRoot") and user == 0:
            raise PodError("container has runAsNonRoot and image will run as root")
        flags = ["--user", f"{user}:{of_pod.get('runAsGroup', 0)}"]
        if own.get("readOnlyRootFilesystem"):
            flags += ["--read-only", "--read-only-tmpfs=false"]
        if own.get("allowPrivilegeEscalation") is False:
            flags += ["--security-opt", "no-new-privileges"]
        if "seccompProfile" not in of_pod:
            flags += ["--security-opt", "seccomp=unconfined"]
        dropped = own.get("capabilities", {}).get("drop", [])
        return flags + [f"--cap-drop={name}" for name in dropped]

    def start(self, objects, owner, name, ordinal=None):
        """Starts the pod that a controller's template describes; as a StatefulSet's its ordinal."""
        spec = owner["spec"]
        pod = spec["template"]["spec"]
        container = pod["containers"][0]
        volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
        for template in spec.get("volumeClaimTemplates", []):
            claim = template["metadata"]["name"]
            volumes[claim] = {"persistentVolumeClaim": {"claimName": f"{claim}-{name}"}}
        flags = ["--name", name, "--hostname", name, "--network", NETWORK, "--pull", "never"]
        if ordinal is not None:
            flags += ["--network-alias", f"{name}.{spec['serviceName']}"]
        for mount in container.get("volumeMounts", []):
            if mount["name"] not in volumes:
                raise PodError(f'volumeMounts: Not found: "{mount["name"]}"')
            flags += self._mount(objects, pod, mount, volumes[mount["name"]])
        for variable in container.get("env", []):
            flags += ["--env", f"{variable['name']}={variable['value']}"]
        if "workingDir" in container:
            flags += ["--workdir", container["workingDir"]]
        if "command" in container:
            flags += ["--entrypoint", json.dumps(container["command"])]
        self.podman("run", "--detach", *flags, *self._security(pod, container), self.image,
                    *container.get("args", []))
        return Pod(self, name, container)
