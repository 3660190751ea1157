#!/usr/bin/env python3
"""Holds deploy/compose to its promises, as docker-compose itself reads it (1.29 or 2).

usage: compose_test.py [DOCKER_COMPOSE]     default: docker-compose
Wants the Debian packages docker-compose, openssl and python3-yaml; starts no container.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

import yaml

COMPOSE = "docker-compose"
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "compose"
STAGES = [f"stage-{k}" for k in range(4)]


def resolved(*files, **environment):
    """The services and volumes that docker-compose makes of files of the folder."""
    command = [COMPOSE] + [word for file in files for word in ("-f", file)] + ["config"]
    clean = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
    done = subprocess.run(command, cwd=FOLDER, env={**clean, **environment}, check=False,
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stderr}")
    return yaml.safe_load(done.stdout)


def source_and_target(volume):
    """Where a mount comes from, and goes to, in either version's spelling."""
    if isinstance(volume, dict):
        return volume["source"], volume["target"]
    return tuple(volume.split(":")[:2])


def is_read_only(volume):
    """Whether a mount may only be read, in either version's spelling."""
    return volume.get("read_only", False) if isinstance(volume, dict) else volume.endswith(":ro")


class ComposeTest(unittest.TestCase):
    """compose.yaml alone and with compose.gpu.yaml over it."""

    @classmethod
    def setUpClass(cls):
        cls.cpu = resolved("compose.yaml")
        cls.gpu = resolved("compose.yaml", "compose.gpu.yaml")
        cls.serve = resolved("compose.yaml", "compose.serve.yaml")

    def test_a_coordinator_four_stages_and_what_shows_them(self):
        services = {*STAGES, "certs", "coordinator", "prometheus", "grafana"}
        self.assertEqual(set(self.cpu["services"]), services)
        self.assertEqual(set(self.gpu["services"]), services)

    def test_ports_are_published_on_the_loopback_only(self):
        published = []
        for service in self.cpu["services"].values():
            for port in service.get("ports", []):
                address = port["host_ip"] if isinstance(port, dict) else port.rsplit(":", 2)[0]
                self.assertEqual(address, "127.0.0.1")
                published.append(port)
        self.assertEqual(len(published), 2)

    def test_no_service_may_more_than_it_needs(self):
        for name, service in self.cpu["services"].items():
            with self.subTest(name):
                self.assertTrue(service["read_only"])
                self.assertEqual(service["cap_drop"], ["ALL"])
                self.assertEqual(service["security_opt"], ["no-new-privileges"])
                self.assertIn("mem_limit", service)
                self.assertNotIn("init", service)  # the images bring tini

    def test_the_programs_run_as_a_numeric_user(self):
        for name in STAGES + ["coordinator"]:
            self.assertRegex(self.cpu["services"][name]["user"], r"^[1-9]\d*:[1-9]\d*$")

    def test_everybody_shows_a_certificate(self):
        for name in STAGES + ["coordinator"]:
            service = self.cpu["services"][name]
            words = " ".join(service.get("entrypoint", []) + service["command"]).replace("=", " ")
            self.assertNotIn("--insecure", words)
            role = name.partition("-")[0]
            for flag in (f"cert /certs/{role}.pem", f"key /certs/{role}.key", "ca /certs/ca.pem"):
                self.assertIn(f"--tls_{flag}", words)

    def test_nobody_sees_the_keys_of_others(self):
        for name, service in self.cpu["services"].items():
            seen = {source: (target, is_read_only(volume)) for volume in service.get("volumes", [])
                    for source, target in [source_and_target(volume)] if "certs" in source}
            own = {f"certs_{name.partition('-')[0]}": ("/certs", True)}
            if name == "certs":
                own = {f"certs_{role}": (f"/certs/{role}", False)
                       for role in ("authority", "coordinator", "stage")}
                self.assertEqual(service["cap_add"], ["CHOWN"])
            elif name not in STAGES + ["coordinator"]:
                own = {}
            else:
                self.assertNotIn("cap_add", service)
            self.assertEqual(seen, own, name)

    def test_each_role_gets_its_certificate_alone(self):
        owner = f"{os.getuid()}:{os.getgid()}"
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for role in ("authority", "coordinator", "stage"):
                (folder / role).mkdir()
            (folder / "certs.sh").symlink_to(FOLDER.parent / "certs.sh")
            with subprocess.Popen([FOLDER.parent / "docker/keep_certificates", folder, owner],
                                  env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
                                  stderr=subprocess.DEVNULL) as keeper:
                end = time.monotonic() + 30
                while not (folder / "stage/stage.pem").exists() and time.monotonic() < end:
                    time.sleep(0.1)
                keeper.terminate()
            self.assertEqual(keeper.returncode, 0)
            for role in ("coordinator", "stage"):
                modes = {path.name: path.stat().st_mode & 0o777
                         for path in (folder / role).iterdir()}
                own = ("ca.pem", f"{role}.key", f"{role}.pem")
                self.assertEqual(modes, dict.fromkeys(own, 0o400))

    def test_stages_wait_for_their_certificate(self):
        for name in STAGES:
            self.assertEqual(self.cpu["services"][name]["depends_on"],
                             {"certs": {"condition": "service_healthy"}})

    def test_the_coordinator_waits_for_healthy_stages(self):
        conditions = self.cpu["services"]["coordinator"]["depends_on"]
        self.assertEqual({name for name, how in conditions.items()
                          if how["condition"] == "service_healthy"}, set(STAGES))

    def test_a_container_that_is_killed_comes_back(self):
        for name in STAGES + ["certs"]:
            self.assertEqual(self.cpu["services"][name]["restart"], "on-failure", name)
        coordinator = self.cpu["services"]["coordinator"]
        self.assertIn("--resume", coordinator["command"])
        self.assertNotIn("--overwrite", coordinator["entrypoint"] + coordinator["command"])
        # An interruption is no loss.
        self.assertEqual(coordinator["entrypoint"][:4], ["tini", "-e", "130", "--"])
        # A run that fails by itself does so a few times and not for ever.
        policy, _, tries = coordinator["restart"].partition(":")
        self.assertEqual(policy, "on-failure")
        self.assertIn(int(tries), range(1, 6))

    def test_a_server_stands_beside_the_coordinator_and_may_no_more(self):
        server = self.serve["services"]["server"]
        coordinator = self.serve["services"]["coordinator"]
        self.assertEqual(set(self.serve["services"]), set(self.cpu["services"]) | {"server"})
        for field in ("image", "user", "read_only", "tmpfs", "cap_drop", "security_opt", "mem_limit"):
            self.assertEqual(server[field], coordinator[field], field)
        self.assertEqual(server["command"][:2], ["thinwire", "serve"])
        self.assertNotIn("--insecure", server["command"])
        own = {"--listen=0.0.0.0:4600", "--out=/runs/queue", "--metrics_linger=5"}
        shared = set(coordinator["entrypoint"]) & set(server["command"])
        self.assertEqual(set(server["command"][2:]) - shared, own)
        self.assertEqual({flag.partition("=")[0] for flag in shared if flag.startswith("--")},
                         {"--stages", "--stages_wait", "--tls_cert", "--tls_key", "--tls_ca",
                          "--metrics_listen"})
        self.assertEqual({(*source_and_target(volume), is_read_only(volume))
                          for volume in server["volumes"]},
                         {("runs", "/runs", False), ("certs_coordinator", "/certs", True)})
        self.assertEqual(server["restart"], "on-failure")
        # The coordinator would take its stages.
        self.assertEqual(set(server["depends_on"]), {*STAGES, "certs", "prometheus"})

    def test_a_server_is_published_where_the_user_says(self):
        for variables, wanted in (({}, "127.0.0.1:4600"),
                                  ({"THINWIRE_SERVER_ADDRESS": "10.0.0.7",
                                    "THINWIRE_SERVER_PORT": "4601"}, "10.0.0.7:4601")):
            service = resolved("compose.yaml", "compose.serve.yaml", **variables)["services"]["server"]
            (port,) = service["ports"]
            shown = (f"{port['host_ip']}:{port['published']}" if isinstance(port, dict)
                     else port.rsplit(":", 1)[0])
            self.assertEqual(shown, wanted)

    def test_prometheus_finds_the_server_too(self):
        config = yaml.safe_load((FOLDER / "../prometheus/compose.yml").read_text())
        (job,) = [job for job in config["scrape_configs"] if job["job_name"] == "coordinator"]
        self.assertEqual(job["dns_sd_configs"][0]["names"], ["coordinator", "server"])

    def test_images_of_others_are_pinned(self):
        for name in ("prometheus", "grafana"):
            self.assertRegex(self.cpu["services"][name]["image"], r":v?\d+\.\d+\.\d+$")

    def test_mounted_files_are_there(self):
        for name, service in self.cpu["services"].items():
            for volume in service.get("volumes", []):
                source, _ = source_and_target(volume)
                if not source.startswith("/"):
                    self.assertIn(source, self.cpu["volumes"])
                elif not pathlib.Path(source).exists():
                    self.fail(f"{name}: {source} does not exist")

    def test_folders_of_the_user_take_the_place_of_volumes(self):
        mine = resolved("compose.yaml", THINWIRE_RUNS="/srv/runs", THINWIRE_DATA="/srv/data",
                        THINWIRE_EXPERIMENTS="/srv/experiments")["services"]
        mounts = dict(map(source_and_target, mine["coordinator"]["volumes"]))
        self.assertEqual(mounts, {"/srv/experiments": "/experiments", "/srv/runs": "/runs",
                                  "certs_coordinator": "/certs"})
        for name in STAGES:
            self.assertEqual(dict(map(source_and_target, mine[name]["volumes"])),
                             {"/srv/data": "/data", "certs_stage": "/certs"})

    def test_stages_get_gpus_by_the_override(self):
        for name in STAGES:
            stage = self.gpu["services"][name]
            (device,) = stage["deploy"]["resources"]["reservations"]["devices"]
            self.assertEqual((device["driver"], device["capabilities"]), ("nvidia", ["gpu"]))
            self.assertEqual(stage["build"]["target"], "cuda")
        self.assertNotIn("deploy", self.gpu["services"]["coordinator"])

    def test_all_programs_are_of_one_image(self):
        for files in (self.cpu, self.gpu):
            self.assertEqual(len({files["services"][name]["image"]
                                  for name in STAGES + ["certs", "coordinator"]}), 1)

    def test_the_stages_of_the_image_serve_where_compose_and_prometheus_look(self):
        dockerfile = (FOLDER / "../docker/Dockerfile").read_text()
        command = re.search(r"^CMD (\[\"stage_server\".*?\])$", dockerfile, re.MULTILINE | re.DOTALL)
        flags = " ".join(json.loads(command[1].replace("\\\n", "")))
        self.assertIn("--listen 0.0.0.0:4700 --metrics_listen 0.0.0.0:9700", flags)
        self.assertIn("--data /data --state /data", flags)
        self.assertIn("--stages=stage-{0..}:4700", self.cpu["services"]["coordinator"]["entrypoint"])

    def test_the_pipelines_of_the_documented_example_have_a_service_for_each_stage(self):
        page = (FOLDER / "../../docs/cluster.md").read_text(encoding="utf-8")
        (example,) = re.findall(r"^(docker compose run (?:.*\\\n)*.*--carriers .*)$", page, re.MULTILINE)
        words = example.replace("\\\n", " ").replace("'", "").split()
        # The addresses are the entrypoint's, whose open range has one for each stage of each pipeline.
        self.assertNotIn("--stages", example)
        carriers = int(words[words.index("--carriers") + 1])
        (cuts,) = re.findall(r"pipeline\.cuts=\[(.*?)\]", example)
        (replicas,) = re.findall(r"replicas\.count=(\d+)", example)
        self.assertEqual(carriers * (len(cuts.split(",")) + 1), len(STAGES))
        self.assertLessEqual(carriers, int(replicas))

    def test_the_readme_has_every_variable(self):
        text = "".join((FOLDER / file).read_text() for file in
                       ("compose.yaml", "compose.gpu.yaml", "compose.serve.yaml"))
        variables = set(re.findall(r"\$\{(\w+)", text))
        documented = set(re.findall(r"`([A-Z_]+)`", (FOLDER / "README.md").read_text()))
        self.assertEqual(variables, documented - {"COMPOSE_PROJECT_NAME"})


if __name__ == "__main__":
    if len(sys.argv) > 1:
        COMPOSE = sys.argv.pop(1)
    unittest.main()
