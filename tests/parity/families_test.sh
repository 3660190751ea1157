#!/usr/bin/env bash
# Holds models like Llama to Hugging Face's transformers: families_test.py in a virtual environment that later
# calls find again, with transformers and PyTorch from PyPI (5 GB). Wants python3-venv; by hand, not in tests/run.sh.
# usage: families_test.sh THINWIRE STAGE_SERVER [CACHE]     default: a folder in ~/.cache/thinwire
set -euo pipefail

thinwire=$(realpath "$1") stage_server=$(realpath "$2")
cache=${3:-}
source "$(dirname "$0")/transformers_venv.sh"
older=$cache/transformers-4.57.6
if [[ ! -e $older/complete ]]; then
  rm -rf "$older"
  "$cache/bin/pip" install --quiet --disable-pip-version-check --no-deps --target="$older" transformers==4.57.6 \
    huggingface-hub==0.36.0 tokenizers==0.22.1 requests charset-normalizer idna urllib3 certifi
  touch "$older/complete"
fi
"$cache/bin/python" "$(dirname "$0")/families_test.py" "$thinwire" "$stage_server" "$older"
