#!/usr/bin/env bash
# Holds models like Llama to Hugging Face's transformers: families_test.py in a virtual environment that later
# calls find again, with transformers and PyTorch from PyPI (5 GB). Wants python3-venv; by hand, not in tests/run.sh.
# usage: families_test.sh THINWIRE STAGE_SERVER [CACHE]     default: ~/.cache/thinwire/transformers-VERSION
set -euo pipefail

readonly version=5.24.0
thinwire=$(realpath "$1") stage_server=$(realpath "$2")
cache=${3:-${XDG_CACHE_HOME:-$HOME/.cache}/thinwire/transformers-$version}
if [[ ! -e $cache/complete ]]; then
  rm -rf "$cache"
  python3 -m venv "$cache"
  "$cache/bin/pip" install --quiet --disable-pip-version-check torch "transformers==$version" safetensors
  touch "$cache/complete"
fi
"$cache/bin/python" "$(dirname "$0")/families_test.py" "$thinwire" "$stage_server"
