# Makes $cache, a virtual environment with Hugging Face's transformers and peft, and PyTorch, from PyPI (5 GB), unless it
# is complete already. Where PyPI does not answer, it says so and ends the script that sources it, as one that is skipped.
cache=${cache:-${XDG_CACHE_HOME:-$HOME/.cache}/thinwire/transformers-5.24.0-peft-0.21.2}
if [[ ! -e $cache/complete ]]; then
  rm -rf "$cache"
  python3 -m venv "$cache"
  "$cache/bin/pip" install --quiet --disable-pip-version-check torch transformers==5.24.0 peft==0.21.2 safetensors || {
    echo "skipped: PyPI has not given transformers, peft and torch"
    exit 0
  }
  touch "$cache/complete"
fi
