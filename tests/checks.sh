# What the shell tests share: checks that count, and waiting with a limit. Source it; `failures` is the
# number of checks that failed.
failures=0

# check WHAT COMMAND...: the command must succeed
check() {
  local what=$1
  shift
  if "$@"; then echo "ok: $what"; else echo "FAILED: $what"; failures=$((failures + 1)); fi
}
equals() { [[ $1 == "$2" ]] || { echo "  got '$1', want '$2'"; return 1; }; }
contains() { grep -qE -- "$2" "$1" || { echo "  '$2' is not in:"; tail -5 "$1" | sed 's/^/  /'; return 1; }; }
# within SECONDS COMMAND...: succeeds as soon as the command does
within() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do (( SECONDS < end )) || return 1; sleep 0.1; done
}
# has_checkpoint FOLDER: the run has written one, whole; one that is being written is step-N.tmp
has_checkpoint() { compgen -G "$1/checkpoints/step-*[0-9]/manifest.json" >/dev/null; }
# gone PID...: none of these processes is there
gone() { local pid; for pid in "$@"; do ! kill -0 "$pid" 2>/dev/null || return 1; done; }
# end_jobs: kills what this shell started and has not waited for. A process id that was kept may be another's by now.
end_jobs() {
  local pid
  for pid in $(jobs -p); do kill -9 "$pid" 2>/dev/null && wait "$pid" 2>/dev/null; done
}
