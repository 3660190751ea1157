#!/usr/bin/env bash
# Installs the package as a user does, with tensorboard from PyPI, into a virtual environment that later
# calls find again, and reads what to_tensorboard writes. Wants python3-venv.
# usage: tensorboard_test.sh [CACHE]     default: ~/.cache/thinwire/tensorboard-VERSION
set -euo pipefail
cd "$(dirname "$0")"

readonly version=2.21.0
cache=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/thinwire/tensorboard-$version}
if [[ ! -e $cache/complete ]]; then
  rm -rf "$cache"
  python3 -m venv "$cache"
  "$cache/bin/pip" install --quiet --disable-pip-version-check "tensorboard==$version" pandas
  touch "$cache/complete"
fi
copy=$(mktemp -d)  # pip builds where the sources lie
trap 'rm -rf "$copy"' EXIT
cp -R pyproject.toml README.md thinwire "$copy"
"$cache/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps "$copy"
cd "$copy" && rm -rf thinwire  # the installed one is meant
"$cache/bin/python" "$OLDPWD/tensorboard_test.py"
