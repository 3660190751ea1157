#!/usr/bin/env bash
# Prints the folder of cudnn-frontend's headers (NVIDIA, MIT licence), by which the CUDA backend has
# cuDNN's attention: a build takes it from $CUDNN_FRONTEND. Fetches them from PyPI once, where a CUDA
# toolkit is. Prints nothing, and says why on stderr, where they are not to be had: the build then
# goes without.
# usage: export CUDNN_FRONTEND=$(deploy/cudnn_frontend.sh)
set -euo pipefail
readonly version=1.18.0
readonly wheel=nvidia_cudnn_frontend-$version-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl
readonly sha256=382ea063b92cbfd5b442cb75ff8422932d78276aecf139e46713ed1ad3d07af4
readonly folder=${XDG_CACHE_HOME:-$HOME/.cache}/thinwire/cudnn-frontend-$version

if [[ -n ${CUDNN_FRONTEND:-} ]]; then
  echo "$CUDNN_FRONTEND"
  exit
fi
if [[ ! -x ${CUDA_HOME:-/usr/local/cuda}/bin/nvcc ]]; then exit; fi
if [[ ! -d $folder/include ]]; then
  made=$(mktemp -d)
  trap 'rm -rf "$made"' EXIT
  if ! python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --dest "$made" \
      --python-version 3.11 --implementation cp --abi cp311 --platform manylinux_2_27_x86_64 \
      "nvidia-cudnn-frontend==$version" >&2; then
    echo "cudnn_frontend.sh: PyPI has no $wheel for us: attention goes without cuDNN" >&2
    exit
  fi
  echo "$sha256  $made/$wheel" | sha256sum --check --quiet - >&2
  unzip -q "$made/$wheel" 'include/*' 'nvidia_cudnn_frontend-*/LICENSE*' -d "$made/unpacked"
  mkdir -p "${folder%/*}"
  mv -T "$made/unpacked" "$folder"
fi
echo "$folder/include"
