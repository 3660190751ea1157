#!/usr/bin/env python3
"""Writes prometheus_rule.yaml: the groups of deploy/prometheus/rules/*.yml as a PrometheusRule.

usage: prometheus_rule.py     after each change of a rule; a test holds one to the other.
Wants Debian's python3-yaml.
"""
import pathlib

import yaml

FOLDER = pathlib.Path(__file__).resolve().parent
RULES = FOLDER.parents[2] / "prometheus" / "rules"


class Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such: kubectl 1.32 adds lines to folded ones."""

    def represent_text(self, text):
        """A text in the style `|` where it has lines, else in whatever style it needs."""
        style = "|" if "\n" in text else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Dumper.add_representer(str, Dumper.represent_text)


def prometheus_rule(folder):
    """The PrometheusRule of all rule files of a folder, as text."""
    groups = [group for path in sorted(folder.glob("*.yml"))
              for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]]
    made = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "thinwire", "labels": {"app.kubernetes.io/name": "thinwire"}},
        "spec": {"groups": groups},
    }
    head = "# Written by prometheus_rule.py from deploy/prometheus/rules/*.yml.\n"
    return head + yaml.dump(made, Dumper=Dumper, sort_keys=False, width=100, allow_unicode=True)


if __name__ == "__main__":
    (FOLDER / "prometheus_rule.yaml").write_text(prometheus_rule(RULES), encoding="utf-8")
