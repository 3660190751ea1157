#!/usr/bin/env bash
# From a fresh Debian 12 or 13 to a trained network: installs what is missing, builds, and trains
# experiments/quickstart.yaml in four stage servers with compressed boundaries.
set -euo pipefail
cd "$(dirname "$0")/.."

deploy/setup.sh
bazel build --config=opt //coordinator:thinwire //stage_server
exec bazel-bin/coordinator/thinwire run experiments/quickstart.yaml --out runs/quickstart --overwrite "$@"
