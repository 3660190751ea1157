#!/usr/bin/env bash
# Installs what Thinwire needs to build and run on Debian 12 or 13. Idempotent; wants root or sudo.
# usage: deploy/setup.sh [--test|--bench]     --test adds what tests/run.sh needs, --bench PyTorch, the
#        yardstick of tests/bench
set -euo pipefail

packages=(
  bazel-bootstrap bazel-rules-java g++ git ca-certificates
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libabsl-dev
  libdnnl-dev ocl-icd-libopencl1 libhwy-dev
  prometheus-cpp-dev libmicrohttpd-dev zlib1g-dev libzstd-dev libjpeg62-turbo-dev libpng-dev
  libcli11-dev libyaml-cpp-dev libspdlog-dev nlohmann-json3-dev libsqlite3-dev
  curl unzip
  libgtest-dev libgmock-dev libbenchmark-dev
)
case "${1-}" in
  '') ;;
  --bench) packages+=(python3-torch python3-numpy) ;;
  --test)
    packages+=(clang lld libomp-dev libclang-rt-dev clang-format prometheus iproute2 procps)
    packages+=(python3 python3-numpy python3-protobuf python3-zstandard python3-pandas python3-venv python3-pip python3-yaml)
    packages+=(docker-compose dpkg-dev lintian man-db openssl systemd)
    packages+=(chromium fonts-dejavu-core)
    command -v kubectl >/dev/null || packages+=(kubernetes-client)  # other packages have one, too
    ;;
  *) echo "setup.sh: unknown argument '$1', want --test or --bench" >&2; exit 2 ;;
esac

system=unknown
[[ -r /etc/os-release ]] && system=$(. /etc/os-release && echo "${ID:-unknown} ${VERSION_ID:-}")
if [[ $system != 'debian 12' && $system != 'debian 13' ]]; then
  echo "setup.sh: this is '$system', not 'debian 12' or 'debian 13'. Install the equivalents of these packages yourself:" >&2
  printf '  %s\n' "${packages[@]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true) == installed ]] || missing+=("$package")
done
if (( ${#missing[@]} == 0 )); then
  echo "setup.sh: all ${#packages[@]} packages are installed."
  exit 0
fi

as_root=()
if (( EUID != 0 )); then
  command -v sudo >/dev/null || { echo "setup.sh: run as root, or install sudo. Wanted: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "setup.sh: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q -o Acquire::Retries=3 >/dev/null
# Java's alternatives want the folder of the manual pages, which slim images lack.
"${as_root[@]}" mkdir -p /usr/share/man/man1
# A configuration file of the user's stays as it is: nobody is there to be asked.
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
  -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "${missing[@]}" >/dev/null
echo "setup.sh: done."
