#!/usr/bin/env bash
# Asked by Bazel for what a build should know about its sources: their commit. THINWIRE_COMMIT says it
# where there is no repository, as in the build of an image.
commit=${THINWIRE_COMMIT-}
if [[ -z $commit ]]; then
  commit=$(git rev-parse --short=12 HEAD 2>/dev/null) || commit=unknown
  [[ $commit == unknown || -z $(git status --porcelain --untracked-files=no 2>/dev/null) ]] || commit+=+
fi
echo "STABLE_COMMIT $commit"
