#!/usr/bin/env bash
# The pages of docs/ as a site, by mkdocs-material from PyPI.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: deploy/docs.sh [--serve] [--out FOLDER] [--venv FOLDER]

Builds site/ from docs/: pages that load nothing from other hosts, with search, light and dark. A link to
nothing is an error.

  --serve        shows it at http://127.0.0.1:8000 instead, and again when a page changes
  --out FOLDER   where the site goes (default: site)
  --venv FOLDER  where the pinned packages of PyPI are, or are installed (default: ~/.cache/thinwire/docs)

SOURCE_URL=https://github.com/OWNER/NAME/blob/main in the environment: where links to source files lead; without it they are
words.

examples:
  deploy/docs.sh && xdg-open site/index.html
  deploy/docs.sh --serve
USAGE
}

refuse() { echo "docs.sh: $*; see --help" >&2; exit 2; }

root=$(cd "$(dirname "$0")/.." && pwd)
serve='' out=$root/site venv=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/thinwire/docs
while (( $# )); do
  case $1 in
    --help|-h) usage; exit 0 ;;
    --serve) serve=1; shift; continue ;;
    --out|--venv) (( $# > 1 )) || refuse "$1 wants a folder" ;;
    *) refuse "unknown argument '$1'" ;;
  esac
  case $1 in
    --out) out=$(realpath -m "$2") ;;
    --venv) venv=$(realpath -m "$2") ;;
  esac
  shift 2
done

wanted=$root/deploy/site/requirements.txt
if ! cmp -s "$wanted" "$venv/installed"; then
  python3 -c 'import ensurepip, venv' 2>/dev/null || refuse 'python3-venv is missing: apt-get install python3-venv'
  python3 -m venv --clear "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check -r "$wanted"
  cp "$wanted" "$venv/installed"
fi
export NO_MKDOCS_2_WARNING=1  # a notice of the theme's makers
if [[ -n $serve ]]; then
  exec "$venv/bin/mkdocs" serve --strict -f "$root/deploy/site/mkdocs.yml"
fi
"$venv/bin/mkdocs" build -q --strict -f "$root/deploy/site/mkdocs.yml" -d "$out"
# Addresses in texts are for readers; what a browser loads by itself must be here.
if grep -rnoE '<(script|img|iframe|source)[^>]* src="https?://[^"]*|<link[^>]* rel="(stylesheet|preconnect|icon)"[^>]* href="https?://[^"]*' \
  --include='*.html' "$out"; then
  echo 'docs.sh: the pages above load from other hosts' >&2
  exit 1
fi
echo "docs.sh: $out/index.html, $(find "$out" -name '*.html' | wc -l) pages"
