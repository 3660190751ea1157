#!/usr/bin/env python3
"""Holds deploy/compose to its promises, as docker-compose itself reads it (1.29 or 2).

usage: compose_test.py [DOCKER_COMPOSE]     default: docker-compose
Wants the Debian packages docker-compose and python3-yaml; starts no container.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
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


class ComposeTest(unittest.TestCase):
    """compose.yaml alone and with compose.gpu.yaml over it."""

    @classmethod
    def setUpClass(cls):
        cls.cpu = resolved("compose.yaml")
        cls.gpu = resolved("compose.yaml", "compose.gpu.yaml")

    def test_a_coordinator_four_stages_and_what_shows_them(self):
        services = {*STAGES, "coordinator", "prometheus", "grafana"}
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

    def test_the_coordinator_waits_for_healthy_stages(self):
        conditions = self.cpu["services"]["coordinator"]["depends_on"]
        self.assertEqual({name for name, how in conditions.items()
                          if how["condition"] == "service_healthy"}, set(STAGES))

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
        self.assertEqual(mounts, {"/srv/experiments": "/experiments", "/srv/runs": "/runs"})
        for name in STAGES:
            self.assertEqual(dict(map(source_and_target, mine[name]["volumes"])),
                             {"/srv/data": "/data"})

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
                                  for name in STAGES + ["coordinator"]}), 1)

    def test_the_stages_of_the_image_serve_where_compose_and_prometheus_look(self):
        dockerfile = (FOLDER / "../docker/Dockerfile").read_text()
        command = re.search(r"^CMD (\[\"stage_server\".*?\])$", dockerfile, re.MULTILINE | re.DOTALL)
        flags = " ".join(json.loads(command[1].replace("\\\n", "")))
        self.assertIn("--listen 0.0.0.0:4700 --metrics_listen 0.0.0.0:9700", flags)
        self.assertIn("--data /data --state /data", flags)
        self.assertIn("--stages=stage-{0..}:4700", self.cpu["services"]["coordinator"]["entrypoint"])

    def test_the_readme_has_every_variable(self):
        text = "".join((FOLDER / file).read_text() for file in ("compose.yaml", "compose.gpu.yaml"))
        variables = set(re.findall(r"\$\{(\w+)", text))
        documented = set(re.findall(r"`([A-Z_]+)`", (FOLDER / "README.md").read_text()))
        self.assertEqual(variables, documented - {"COMPOSE_PROJECT_NAME"})


if __name__ == "__main__":
    if len(sys.argv) > 1:
        COMPOSE = sys.argv.pop(1)
    unittest.main()
