#!/usr/bin/env bash
# Every command of docs/tutorial_finetune.md, and what it shows of their output, with a real model from PyPI.
# usage: tutorial_finetune.sh     THINWIRE and STAGE_SERVER in the environment: programs other than bazel's
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ -z ${THINWIRE:-} || -z ${STAGE_SERVER:-} ]]; then
  bazel build --config=opt --curses=no --noshow_progress //coordinator:thinwire //stage_server
  THINWIRE=bazel-bin/coordinator/thinwire STAGE_SERVER=bazel-bin/stage_server/stage_server
fi
model=${XDG_CACHE_HOME:-$HOME/.cache}/thinwire/SmolLM2-135M-Instruct
tests/parity/smollm2.sh "$model"
PYTHONDONTWRITEBYTECODE=1 tests/tutorial_test.py "$THINWIRE" "$STAGE_SERVER" experiments/quickstart.yaml docs/tutorial_finetune.md "$model"
