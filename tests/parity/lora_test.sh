#!/usr/bin/env bash
# Holds adapters to Hugging Face's peft: lora_test.py in the virtual environment of families_test.sh, with peft beside.
# Wants python3-venv; by hand, not in tests/run.sh.
# usage: lora_test.sh THINWIRE STAGE_SERVER [FAMILY...]     default: all families
set -euo pipefail

thinwire=$(realpath "$1") stage_server=$(realpath "$2")
cache=
source "$(dirname "$0")/transformers_venv.sh"
"$cache/bin/python" "$(dirname "$0")/lora_test.py" "$thinwire" "$stage_server" "${@:3}"
