#!/usr/bin/env bash
# Checks and times everything CUDA on a machine with a GPU, from a bundle or from the sources:
# finds python3 and the libraries that the plugin wants, then runs run.py. See run.sh --help.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

python=${PYTHON:-python3}
command -v "$python" >/dev/null || { echo "run.sh: no $python; name one in PYTHON" >&2; exit 2; }

# cuDNN and cuBLAS of Python's wheels (nvidia/cudnn/lib, nvidia/cu13/lib, ...), then a toolkit's.
folders=$("$python" -c '
import glob, os, sys
for site in sys.path:
    for folder in sorted(glob.glob(os.path.join(site, "nvidia", "*", "lib"))):
        if glob.glob(os.path.join(folder, "libcu*.so*")):
            print(folder, end=":")
')
toolkit=${CUDA_HOME:-/usr/local/cuda}
for folder in "$toolkit/lib64" "$toolkit/targets/x86_64-linux/lib"; do
  if [[ -d $folder ]]; then folders+=$folder:; fi
done
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}${LD_LIBRARY_PATH:+:}${folders%:}
export PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
exec "$python" "$here/run.py" "$@"
