#!/usr/bin/env bash
# Makes a portable tarball: both programs, the CUDA backend where there is a toolkit ($CUDA_HOME,
# else /usr/local/cuda), with it what tests/gpu/run.sh runs, and the example experiments. Runs on
# x86-64-v2 Linux with glibc 2.34 or newer (Debian 12, Ubuntu 22.04, …) without any package; a GPU
# wants its driver, cuDNN 9 and cuBLAS too.
# usage: deploy/bundle.sh [--arch LIST] [--fast] [OUTPUT.tar.xz]     default: thinwire-COMMIT.tar.xz
#        deploy/bundle.sh --into FOLDER       no tarball; what an image of this Debian lacks: programs, CUDA backend, libraries
#        --arch 90a or 80,90a: for these GPUs alone (default: all); --fast: light compression, of any size
# On one's way to a machine with a GPU: deploy/bundle.sh --arch 90a --fast
set -euo pipefail
cd "$(dirname "$0")/.."
readonly most_bytes=25000000

output='' bundle='' arch=all compress=(xz -9e)
while (( $# )); do
  case $1 in
    --into) bundle=$(realpath -m "${2:?bundle.sh: --into wants a folder}"); shift ;;
    --arch) arch=${2:?bundle.sh: --arch wants a list, as 80,90a}; shift ;;
    --fast) compress=(xz -2 -T0) ;;
    -*) echo "bundle.sh: unknown argument '$1', want --arch LIST, --fast, --into FOLDER or the path of a tarball" >&2; exit 2 ;;
    *) output=$1 ;;
  esac
  shift
done
if [[ -z $bundle ]]; then
  output=${output:-thinwire-$(git rev-parse --short=12 HEAD 2>/dev/null || echo local).tar.xz}
fi
deploy/setup.sh
if [[ -z $bundle ]]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  bundle=$folder/thinwire
fi
mkdir -p "$bundle/lib"

targets=(//coordinator:thinwire //stage_server)
programs=(coordinator/thinwire stage_server/stage_server)
cuda=()
toolkit=${CUDA_HOME:-/usr/local/cuda}
if [[ -x $toolkit/bin/nvcc ]]; then
  cuda=(--config=cuda --define=cuda_arch="$arch")
  CUDNN_FRONTEND=$(deploy/cudnn_frontend.sh)
  export CUDNN_FRONTEND
  targets+=(//backend/cuda:libthinwire_cuda.so)
  programs+=(backend/cuda/libthinwire_cuda.so)
else
  echo "bundle.sh: no CUDA backend, $toolkit/bin/nvcc does not exist"
fi
if (( ${#cuda[@]} )) && [[ -n $output ]]; then
  targets+=(//tests:step_bench //tests:message_bench //tests/gpu:twins //tests/gpu:device_tests //tests/gpu:kernel_probe //tests/gpu:libgpu_timeline.so)
  targets+=(//compress/cuda:codec_bench)
  programs+=(tests/step_bench tests/message_bench tests/gpu/twins tests/gpu/device_tests tests/gpu/kernel_probe tests/gpu/libgpu_timeline.so)
  programs+=(compress/cuda/codec_bench)
  mkdir -p "$bundle"/tests/{gpu,bench,parity}
  cp tests/gpu/*.{py,sh,md} "$bundle/tests/gpu/"
  rm "$bundle"/tests/gpu/*_test.*
  cp tests/bench/{gpt2,resnet,torch_step}.py "$bundle/tests/bench/"
  cp tests/parity/*.safetensors "$bundle/tests/parity/"
fi

config=bundle
[[ -n $output ]] || config=image
bazel build --config=$config "${cuda[@]}" "${targets[@]}"
for program in "${programs[@]}"; do
  install -m 755 "bazel-bin/$program" "$bundle/"
done
# What is linked shared and is not part of every system or of CUDA: beside the programs.
theirs='libc|libm|libdl|librt|libpthread|ld-linux-x86-64|libcu[a-zA-Z]*|libnv[a-zA-Z]*'
# In an image they are Debian's: of apt, dpkg, openssl and libmicrohttpd.
[[ -n $output ]] || theirs+='|libgcc_s|libstdc\+\+|libz|libzstd|libcrypto|libssl|libmicrohttpd|libgnutls|libhogweed'
[[ -n $output ]] || theirs+='|libnettle|libgmp|libp11-kit|libidn2|libunistring|libtasn1|libffi'
LD_LIBRARY_PATH=$toolkit/lib64 find "$bundle" -maxdepth 1 -type f -perm -u+x -exec ldd {} + | awk '$2 == "=>" { print $3 }' | sort -u |
  grep -vE "/($theirs)\.so" |
  xargs -I{} cp -L {} "$bundle/lib/"
(cd "$bundle" && strip --strip-unneeded "${programs[@]##*/}" lib/*)
if [[ -z $output ]]; then
  exit
fi

cp -r experiments README.md "$bundle/"
tar -C "$folder" -c thinwire | "${compress[@]}" >"$output"
(cd "$bundle" && du -b --apparent-size -- * lib/* | sort -k2)
bytes=$(stat -c %s "$output")
echo "bundle.sh: $output, $bytes bytes"
if (( bytes > most_bytes )) && [[ ${compress[1]} == -9e ]]; then
  echo "bundle.sh: want at most $most_bytes bytes" >&2
  exit 1
fi
