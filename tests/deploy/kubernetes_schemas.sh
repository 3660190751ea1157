#!/usr/bin/env bash
# Holds every object of every overlay of deploy/k8s to the published schemas of the oldest and the
# newest supported Kubernetes. Takes kubernetes-validate from PyPI (23 MB) into a virtual
# environment that later calls find again; wants python3-venv and kubernetes-client.
# usage: kubernetes_schemas.sh [CACHE]     default: ~/.cache/thinwire/kubernetes-validate-VERSION
set -euo pipefail
cd "$(dirname "$0")/../../deploy/k8s/overlays"

readonly version=1.37.0 oldest=1.27 newest=1.37
cache=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/thinwire/kubernetes-validate-$version}
if [[ ! -x $cache/bin/kubernetes-validate ]]; then
  python3 -m venv "$cache"
  "$cache/bin/pip" install --quiet "kubernetes-validate==$version"
fi

rendered=$(mktemp -d)
trap 'rm -rf "$rendered"' EXIT
objects=0
for overlay in *; do
  kubectl kustomize "$overlay" >"$rendered/$overlay.yaml"
  for kubernetes in "$oldest" "$newest"; do
    "$cache/bin/kubernetes-validate" -k "$kubernetes" --strict "$rendered/$overlay.yaml" \
      >"$rendered/said" || { grep -v passed "$rendered/said" >&2; exit 1; }
    # An object without a schema is a warning only; kinds of the Prometheus operator and of cert-manager have none.
    if grep WARN "$rendered/said" | grep -vE ' (monitoring.coreos.com|cert-manager.io)/v1 ' >&2; then exit 1; fi
    objects=$((objects + $(grep -c passed "$rendered/said" || true)))
  done
done
echo "kubernetes_schemas.sh: $objects objects are valid for Kubernetes $oldest and $newest"
