#!/usr/bin/env bash
# promtool on deploy/prometheus: configurations, rules, and the rules on series written by hand.
# usage: prometheus_rules_test.sh DEPLOY
set -euo pipefail

deploy=$1
# Debian's promtool knows no discovery in Kubernetes: prometheus_configs_test.py has kubernetes.yml.
promtool check config --syntax-only "$deploy"/prometheus/{compose,files}.yml
promtool check rules "$deploy"/prometheus/rules/*.yml
promtool test rules "$(dirname "$0")/prometheus_rules_test.yml"
# Each alert has its section in the page that it names.
alerts=$(sed -n 's/^ *- alert: //p' "$deploy"/prometheus/rules/alerts.yml)
for alert in $alerts; do
  grep -q "runbook_url: docs/alerts.md#${alert,,}\$" "$deploy"/prometheus/rules/alerts.yml ||
    { echo "FAILED: $alert names no section"; exit 1; }
  grep -q "^## $alert\$" "$deploy"/../docs/alerts.md ||
    { echo "FAILED: docs/alerts.md has no section $alert"; exit 1; }
done
echo "ok: $(wc -w <<<"$alerts") alerts have a section each"
