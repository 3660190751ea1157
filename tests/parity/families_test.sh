#!/usr/bin/env bash
# Holds models like Llama to Hugging Face's transformers: families_test.py in a virtual environment that later
# calls find again, with transformers and PyTorch from PyPI (5 GB). Wants python3-venv; by hand, not in tests/run.sh.
# usage: families_test.sh THINWIRE STAGE_SERVER [CACHE]     default: a folder in ~/.cache/thinwire
set -euo pipefail

thinwire=$(realpath "$1") stage_server=$(realpath "$2")
cache=${3:-}
source "$(dirname "$0")/transformers_venv.sh"
"$cache/bin/python" "$(dirname "$0")/families_test.py" "$thinwire" "$stage_server"
