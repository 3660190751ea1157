#!/usr/bin/env bash
# GPT-2's byte pair encoding beside tiktoken's, of PyPI, one thread each: the ids of the given texts
# and of a corpus of what tokenizers stumble over must be equal, and each says its speed. Fails where
# an id differs.
# usage: tests/bench/bpe_vs_tiktoken.sh VOCABULARY_DIR TEXT...    as data/gpt2-bpe data/wikitext2/wiki.*.tokens;
#        `thinwire data fetch gpt2-bpe wikitext2` gets them. BPE_BENCH=bazel-bin/data/bpe_bench in the
#        environment.
set -euo pipefail
cd "$(dirname "$0")/../.."
bench=${BPE_BENCH:-bazel-bin/data/bpe_bench}
(( $# > 1 )) || { echo "bpe_vs_tiktoken.sh: want VOCABULARY_DIR TEXT..." >&2; exit 2; }
[[ -x $bench ]] || { echo "bpe_vs_tiktoken.sh: no $bench: bazel build --config=opt //data:bpe_bench" >&2; exit 1; }

venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT
/usr/bin/python3 -m venv "$venv"
"$venv/bin/pip" install --quiet tiktoken
"$venv/bin/python" -B tests/bench/bpe_vs_tiktoken.py "$bench" "$@"
