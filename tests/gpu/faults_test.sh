#!/usr/bin/env bash
# A fault in each part of run.sh, on the emulated GPU: the last 12,000 characters of the console, which
# is what is seen of a machine that is far away, say what is wrong with each.
# usage: faults_test.sh PLUGIN CHECKS
set -uo pipefail
here=$PWD plugin=$PWD/$1
source "$2"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root/tests/gpu" "$work/bin"
ln -s "$here"/tests/gpu/*.py "$here/tests/gpu/run.sh" "$root/tests/gpu/"
for folder in tests/parity experiments; do ln -s "$here/$folder" "$root/$folder"; done

# wrap PROGRAM FOLDER: one whose fault comes from stdin, where "$@" is what it was called with
wrap() {
  { printf '#!/usr/bin/env bash\n'; cat; printf 'exec %q "$@"\n' "$here/$2/$1"; } >"$root/$1"
  chmod +x "$root/$1"
}

# run CONSOLE ARGUMENTS...
run() {
  local console=$1
  shift
  PATH=$work/bin:$PATH "$root/tests/gpu/run.sh" --out "$work/out" --rehearse --plugin "$plugin" \
    --work "$work/runs" "$@" >"$console" 2>&1
  check 'it fails' equals $? 1
  tail -c 12000 "$console" >"$console.end"
}
# says WHAT REGULAR_EXPRESSION...
says() {
  local what=$1 expression
  shift
  for expression in "$@"; do check "$what: '$expression'" contains "$work/console.end" "$expression"; done
}

# A kernel that cannot be launched at all is no fault of ours, and nothing else is worth its time.
wrap kernel_probe_emulated tests/gpu <<<'export THINWIRE_EMULATED_DEVICES=0'
for program in thinwire:coordinator step_bench:tests message_bench:tests twins:tests/gpu \
    device_tests_emulated:tests/gpu codec_bench_emulated:compress/cuda stage_server:stage_server; do
  wrap "${program%:*}" "${program#*:}" </dev/null
done
run "$work/console"
says 'no device' '^== device failed: no kernel of this build runs here: .*cudaErrorNoDevice: no CUDA-capable'
check 'the other parts are left' contains "$work/console" '^Left for another call: twins, device_tests, parity,'

wrap kernel_probe_emulated tests/gpu </dev/null
wrap twins tests/gpu <<'EOF'
case "$*" in
  *list_tests*) ;;
  *ParityTest*) echo 'terminate called: no such symbol' >&2; kill -ABRT $$ ;;
  *CudaCastTest*) export THINWIRE_EMULATED_MEMORY=1000 ;;
esac
EOF
wrap device_tests_emulated tests/gpu <<<'export THINWIRE_EMULATED_ORDER=sideways'
wrap thinwire coordinator <<'EOF'
case "$*" in
  *" $OUT/device "*) export THINWIRE_EMULATED_MEMORY=100000 ;;
  *gpipe*) set -- "$@" --set seed=7 ;;
  *" $OUT/language-cpu "*) set -- "$@" --set seed=7 ;;
  *" $OUT/mixed "*) echo 'the reason, on standard output'; echo 'a warning' >&2; exit 3 ;;
  *" $OUT/quickstart "*) set -- "$@" --set optimizer.lr=fast ;;
  *" $OUT/speed "*) export STAGES_CRASH=1 ;;
esac
EOF
sed -i "2i OUT=$work/runs" "$root/thinwire"
wrap stage_server stage_server <<<'[[ -z ${STAGES_CRASH:-} ]] || { echo "a stage lost its GPU" >&2; kill -SEGV $$; }'
wrap codec_bench_emulated compress/cuda <<<'export THINWIRE_EMULATED_MEMORY=1000'
wrap message_bench tests <<<'export THINWIRE_EMULATED_DEVICES=0'
wrap step_bench tests <<<'echo "step_bench: a plan of 64 channels failed" >&2; exit 9'
cat >"$work/bin/compute-sanitizer" <<'EOF'
#!/bin/sh
echo '========= COMPUTE-SANITIZER'
[ "$2" = racecheck ] || exit 0
echo '========= Error: Race reported between Write access at SumInOrder+0x10'
exit 9
EOF
chmod +x "$work/bin/compute-sanitizer"
run "$work/console"
check 'every part fails' contains "$work/console.end" \
  '^FAILED: device, twins, device_tests, parity, n_stages, language, mixed, messages, timeline, codecs, step_gpt2, step_bf16_512, four_stages, step_bf16_100, step_tf32_512, sanitizer, quickstart,'
says device '^== device failed: thinwire: exit [0-9]+: .*no memory for'
says twins '^== twins failed: [0-9]+ tests failed: CudaCastTest' '^-- CudaCastTest.*:$' 'no memory for [0-9]+ bytes'
says device_tests '^-- CudaDeviceTest.SaysWhatItIs:$' 'device_tests_emulated ended in this test: SIGABRT' 'sideways'
says parity '^== parity failed: twins: SIGABRT: terminate called: no such symbol'
says n_stages '^== n_stages failed: topk, ef21, 4 stages gpipe: losses, .*differ'
says language '^== language failed: gpt2: losses are .* on the GPU, .* on the CPU'
says mixed '^== mixed failed: thinwire: exit 3: the reason, on standard output / a warning'
says quickstart '^== quickstart failed: .*optimizer.lr.*fast'
says four_stages '^== four_stages failed: .*stage' 'a stage lost its GPU'
says codecs '^== codecs failed: codec_bench_emulated: exit 1: .*no memory for'
says messages '^== messages failed: message_bench: exit 1: '
says step '^== step_bf16_512 failed: .*exit 9: step_bench: a plan of 64 channels failed'
says sanitizer '^== sanitizer failed: racecheck: Error: Race reported between Write access at SumInOrder'
check 'what failed ran again alone' contains "$work/console" '^-- alone, with CUDA_LAUNCH_BLOCKING=1: '
(( failures == 0 )) || cat "$work/console"

exit "$failures"
