#!/usr/bin/env bash
# Builds and runs every test: optimised, then ASAN + UBSAN (which also replays the fuzz corpora),
# then TSAN for the link and the executor.   usage: tests/run.sh [opt|sanitize|thread]...
# Ends with a line "N passed, N failed" and fails unless all passed.
set -uo pipefail
cd "$(dirname "$0")/.."

deploy/setup.sh --test || exit 1
parts=("$@")
(( ${#parts[@]} )) || parts=(opt sanitize thread)

log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0

# run_part TITLE BAZEL_ARGUMENTS...
run_part() {
  local title=$1 started=$SECONDS
  shift
  echo "== $title"
  bazel test --keep_going --color=no --curses=no --noshow_progress "$@" 2>&1 | tee "$log" |
    grep -vE '(NO STATUS|^$|^INFO: (Analyzed|Found|Elapsed|Build)|PASSED in)'
  local status=${PIPESTATUS[0]}
  local ok bad
  ok=$(grep -cE '^//[^ ]+ .*PASSED in' "$log")
  bad=$(grep -cE '^//[^ ]+ .*(FAILED|TIMEOUT|NO STATUS)' "$log")
  if (( status != 0 && bad == 0 )); then bad=1; fi  # the build itself failed
  passed=$((passed + ok)) failed=$((failed + bad))
  printf '== %s: %d passed, %d failed, %.1f minutes\n' "$title" "$ok" "$bad" \
    "$(awk "BEGIN { print ($SECONDS - $started) / 60 }")"
}

for part in "${parts[@]}"; do
  case $part in
    opt) run_part 'optimised' --config=opt //... ;;
    sanitize)
      run_part 'address and undefined behaviour' --config=asan --config=ubsan \
        --test_tag_filters=-no_sanitizer --build_tests_only //... ;;
    thread)
      run_part 'threads' --config=tsan --build_tests_only //stage_server/... ;;
    *) echo "tests/run.sh: unknown part '$part', want opt, sanitize or thread" >&2; exit 2 ;;
  esac
done
echo "$passed passed, $failed failed"
(( failed == 0 && passed > 0 ))
