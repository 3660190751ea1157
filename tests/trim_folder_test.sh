#!/usr/bin/env bash
# What trim_folder.py removes of a folder, and what it keeps.
# usage: trim_folder_test.sh TRIM_FOLDER
set -uo pipefail
source "$(dirname "$0")/checks.sh"
trim=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work/cache/ac" "$work/cache/cas"
for file in ac/one 'cas/tw o' cas/three cas/four; do head -c 100 /dev/zero >"$work/cache/$file"; done
touch -d '4 days ago' "$work/cache/ac/one"
touch -d '2 days ago' "$work/cache/cas/tw o"
touch -d '3 days ago' "$work/cache/cas/three"
touch -m -d '9 days ago' "$work/cache/cas/four"  # but read since
kept() { (cd "$work/cache" && find . -type f | sort | paste -sd " "); }

"$trim" "$work/cache" 400 150
check 'a folder that is not too large keeps all' equals "$(kept)" './ac/one ./cas/four ./cas/three ./cas/tw o'
"$trim" "$work/cache" 399 250
check 'of another the files go that were not used for the longest time' equals "$(kept)" './cas/four ./cas/tw o'
"$trim" "$work/cache" 0 100
check 'those that were read stay before those that were written' equals "$(kept)" './cas/four'
"$trim" "$work/none" 0 0
check 'a folder that is not there is none' equals $? 0
exit "$failures"
