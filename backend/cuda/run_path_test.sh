#!/usr/bin/env bash
# LD_LIBRARY_PATH comes before the toolkit that the plugin was built with, so that Python's wheels, or
# whatever else a machine has, can take its place.   usage: run_path_test.sh PLUGIN CHECKS
set -uo pipefail
plugin=$1
source "$2"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# place LIBRARY: from where the loader takes it
place() { ldd "$plugin" | awk -v name="$1" '$1 == name { print $3 }'; }

for library in libcudnn.so.9 libcublas.so.13 libcublasLt.so.13; do
  toolkit=$(place "$library")
  check "$library is found in the toolkit" test -f "$toolkit"
  ln -s "$(readlink -f "$toolkit")" "$work/$library"
  check "$library is taken from LD_LIBRARY_PATH" \
    equals "$(LD_LIBRARY_PATH=$work place "$library")" "$work/$library"
done

exit "$failures"
