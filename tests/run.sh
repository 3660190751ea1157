#!/usr/bin/env bash
# Reads the sources for what no compiler sees. Builds and runs the programs and what computes, optimised;
# then every test with ASAN + UBSAN (which also replays the fuzz corpora), then TSAN for the link and the
# executor. Then checks of deploy/ that want PyPI, if it answers. Then compiles what is for GPUs, if there
# is a CUDA toolkit ($CUDA_HOME or /usr/local/cuda).
# usage: tests/run.sh [source|opt|sanitize|thread|deploy|cuda]...
# Ends with a line "N passed, N failed" (", N skipped") and fails unless all passed.
set -uo pipefail
cd "$(dirname "$0")/.."

deploy/setup.sh --test || exit 1
CUDNN_FRONTEND=$(deploy/cudnn_frontend.sh)
export CUDNN_FRONTEND
# A warning is an error where CI says so; a user's compiler may be newer and warn of more.
strict=(${CI:+--config=strict})
# There, what was compiled before is used again; every test runs. Of 20 GB what was used last stays, 15 GB.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/thinwire/build
cached=(${CI:+"--disk_cache=$cache"})
if [[ ${CI-} ]]; then tests/trim_folder.py "$cache" 20000000000 15000000000; fi
# Some tests mostly wait, for other processes or for deadlines: more run at once than there are cores.
parallel=(--jobs="HOST_CPUS*1.5" --local_cpu_resources="HOST_CPUS*1.5")
parts=("$@")
(( ${#parts[@]} )) || parts=(source opt sanitize thread deploy cuda)

log=$(mktemp)
targets=$(mktemp)
trap 'rm -f "$log" "$targets"' EXIT
passed=0 failed=0 skipped=0

# count TITLE STARTED STATUS PASSED FAILED
count() {
  local title=$1 started=$2 status=$3 ok=$4 bad=$5
  if (( status != 0 && bad == 0 )); then bad=1; fi  # not even analysed
  passed=$((passed + ok)) failed=$((failed + bad))
  printf '== %s: %d passed, %d failed, %.1f minutes\n' "$title" "$ok" "$bad" \
    "$(awk "BEGIN { print ($SECONDS - $started) / 60 }")"
}

# run_part TITLE BAZEL_ARGUMENTS...
run_part() {
  local title=$1 started=$SECONDS
  shift
  echo "== $title"
  bazel test "${strict[@]}" "${cached[@]}" ${CI:+--nocache_test_results} "${parallel[@]}" --keep_going --color=no --curses=no --noshow_progress "$@" 2>&1 | tee "$log" |
    grep -vE '(NO STATUS|^$|^INFO: (Analyzed|Found|Elapsed|Build)|PASSED in)'
  local status=${PIPESTATUS[0]}
  skipped=$((skipped + $(grep -cE '^//[^ ]+ .*SKIPPED' "$log")))
  count "$title" "$started" "$status" "$(grep -cE '^//[^ ]+ .*PASSED in' "$log")" \
    "$(grep -cE '^//[^ ]+ .*(FAILED|TIMEOUT|NO STATUS)' "$log")"
}

# run_checks TITLE COMMAND...
run_checks() {
  local title=$1 started=$SECONDS ok=0 bad=0 check
  shift
  echo "== $title"
  for check in "$@"; do
    if $check; then ok=$((ok + 1)); else bad=$((bad + 1)) && echo "FAILED: $check"; fi
  done
  count "$title" "$started" 0 "$ok" "$bad"
}

# Checks by tools that Debian does not have: dashboards by Grafana's SDK, manifests by Kubernetes' schemas,
# TensorBoard's files by TensorBoard, rendered conversations by transformers; and docs/ as a site.
run_deploy() {
  if ! curl -sfo /dev/null --max-time 20 https://pypi.org/simple/pip/; then
    echo '== deployment: not checked, https://pypi.org does not answer'
    skipped=$((skipped + 1))
    return
  fi
  run_checks deployment 'deploy/grafana/make.sh --check' tests/deploy/kubernetes_schemas.sh \
    tests/tutorial_finetune.sh python/tensorboard_test.sh python/prepare_test.sh deploy/docs.sh
}

# Each target that exists with --config=cuda only, and what depends on one; and the plugin as a
# bundle has it, whose libraries are linked in another way. (--config=bundle would compile it anew.)
run_cuda() {
  local started=$SECONDS toolkit=${CUDA_HOME:-/usr/local/cuda}
  if [[ ! -x $toolkit/bin/nvcc ]]; then
    echo "== CUDA: not compiled, $toolkit/bin/nvcc does not exist"
    skipped=$((skipped + 1))
    return
  fi
  echo "== CUDA"
  local build=(bazel build "${strict[@]}" "${cached[@]}" --config=opt --config=cuda --keep_going --color=no --curses=no
    --noshow_progress --show_result=100000)
  bazel query --noshow_progress \
    'rdeps(//..., attr(target_compatible_with, "//third_party/cuda:never", //...))' >"$targets" &&
    "${build[@]}" --target_pattern_file="$targets" >"$log" 2>&1 &&
    "${build[@]}" --define=bundle=1 //backend/cuda:libthinwire_cuda.so >>"$log" 2>&1
  local status=$?
  grep -vE '^(Target .* up-to-date|  bazel-bin/|Loading:|Analyzing:|INFO:|$)' "$log"
  count CUDA "$started" "$status" "$(grep -cE '^Target .* up-to-date' "$log")" \
    "$(grep -cE '^Target .* failed to build' "$log")"
}

for part in "${parts[@]}"; do
  case $part in
    source) run_checks sources tests/one_definition.py tests/figures.py tests/folder_pages.py tests/house.py ;;
    opt)
      run_part 'optimised' --config=opt --build_tag_filters=-decides --test_tag_filters=-decides //...
      ;;
    sanitize)
      run_part 'address and undefined behaviour' --config=asan --config=ubsan \
        --test_tag_filters=-no_sanitizer --build_tests_only //... ;;
    thread)
      run_part 'threads' --config=tsan --build_tests_only //stage_server/... //transport/... //wire/... ;;
    deploy) run_deploy ;;
    cuda) run_cuda ;;
    *)
      echo "tests/run.sh: unknown part '$part', want source, opt, sanitize, thread, deploy or cuda" >&2
      exit 2
      ;;
  esac
done
result="$passed passed, $failed failed"
if (( skipped > 0 )); then result+=", $skipped skipped"; fi
echo "$result"
(( failed == 0 && passed > 0 ))
