#!/usr/bin/env bash
# Makes the dashboards, or checks that they are what dashboards.py makes: it runs that script in a
# virtual environment with what requirements.txt pins, which is made once, in the user's cache.
# Wants python3-venv, and PyPI the first time.   usage: deploy/grafana/make.sh [--check]
set -euo pipefail
cd "$(dirname "$0")"

pins=$(sha256sum requirements.txt | cut -c 1-16)
environment=${XDG_CACHE_HOME:-$HOME/.cache}/thinwire/grafana-sdk-$pins
if [[ ! -e $environment/complete ]]; then
  rm -rf "$environment"
  python3 -m venv "$environment"
  "$environment/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes \
    --requirement requirements.txt
  touch "$environment/complete"
fi
exec env PYTHONDONTWRITEBYTECODE=1 "$environment/bin/python" dashboards.py "$@"
