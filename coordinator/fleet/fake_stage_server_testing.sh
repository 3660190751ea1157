#!/bin/bash
# A stage server of launcher_test: says where it serves, and ends with its lifeline. FAKE_STAGE
# chooses what goes wrong: "mute" never serves, "broken" fails at start, "deaf" ignores SIGTERM and
# its lifeline, "rambling" says something else than JSON.
for argument in "$@"; do
  case "$argument" in
    --listen=*) listen="${argument#*=}" ;;
    --ready_fd=*) ready="${argument#*=}" ;;
    --lifeline_fd=*) lifeline="${argument#*=}" ;;
    --cuda_plugin=*) plugin=", plugin ${argument#*=}" ;;
  esac
done
echo "listening at $listen with $OMP_NUM_THREADS threads, $OMP_WAIT_POLICY$plugin"
case "$FAKE_STAGE" in
  broken) echo "cannot read data"; exit 3 ;;
  mute) exec sleep infinity ;;
  rambling) echo "hello" >&"$ready" ;;
  deaf) trap '' TERM ;;
esac
echo "{\"listen\":\"$listen\",\"metrics\":\"127.0.0.1:9\"}" >&"$ready"
eval "exec $ready>&-"
[ "$FAKE_STAGE" = deaf ] && exec sleep infinity
exec cat <&"$lifeline"
