#!/usr/bin/env bash
# Makes a portable tarball of both programs and the example experiments: runs on x86-64-v2 Linux
# with glibc 2.34 or newer (Debian 12, Ubuntu 22.04, …) without any package.
# usage: deploy/bundle.sh [OUTPUT.tar.gz]     default: thinwire-COMMIT.tar.gz
set -euo pipefail
cd "$(dirname "$0")/.."

deploy/setup.sh
output=${1:-thinwire-$(git rev-parse --short=12 HEAD 2>/dev/null || echo local).tar.gz}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
bazel build --config=bundle //coordinator:thinwire //stage_server
mkdir -p "$folder/thinwire/lib"
install -m 755 bazel-bin/coordinator/thinwire bazel-bin/stage_server/stage_server "$folder/thinwire/"
cp -r experiments README.md "$folder/thinwire/"
# What is linked shared and is not part of every system: beside the programs.
ldd "$folder"/thinwire/{thinwire,stage_server} | awk '$2 == "=>" { print $3 }' | sort -u |
  grep -vE '/(libc|libm|libdl|librt|libpthread|ld-linux-x86-64)\.so' | xargs -I{} cp -L {} "$folder/thinwire/lib/"
tar -C "$folder" -czf "$output" thinwire
echo "bundle.sh: $output, $(du -h "$output" | cut -f1)"
