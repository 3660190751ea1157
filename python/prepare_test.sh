#!/usr/bin/env bash
# Runs prepare_test.py beside transformers and pyarrow from PyPI, in a virtual environment that later calls find
# again. Wants python3-venv.
# usage: prepare_test.sh [CACHE]     default: ~/.cache/thinwire/prepare-VERSION
set -euo pipefail
cd "$(dirname "$0")"

readonly version=5.24.0
cache=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/thinwire/prepare-$version}
if [[ ! -e $cache/complete ]]; then
  rm -rf "$cache"
  python3 -m venv "$cache"
  "$cache/bin/pip" install --quiet --disable-pip-version-check "transformers==$version" jinja2 pyarrow
  touch "$cache/complete"
fi
"$cache/bin/python" prepare_test.py thinwire/__init__.py ../data/hf_testdata
