#!/usr/bin/env bash
# Published tokenizers beside Hugging Face's library of PyPI, with one thread: each says its speed on the given texts, and
# how long a file takes to open. Fails where an id differs.
# usage: tests/bench/tokenizers_vs_hf.sh TEXT...    as data/wikitext2/wiki.train.tokens. TOKENIZER_BENCH=
#        bazel-bin/data/hf_tokenizer_bench in the environment.
set -euo pipefail
cd "$(dirname "$0")/../.."
bench=${TOKENIZER_BENCH:-bazel-bin/data/hf_tokenizer_bench}
(( $# > 0 )) || { echo "tokenizers_vs_hf.sh: want TEXT..." >&2; exit 2; }
[[ -x $bench ]] || { echo "tokenizers_vs_hf.sh: no $bench: bazel build --config=opt //data:hf_tokenizer_bench" >&2; exit 1; }
source tests/parity/tokenizers_venv.sh
PYTHONPATH=tests/parity "$cache/bin/python" -B tests/bench/tokenizers_vs_hf.py "$bench" "$cache" "$@"
