#!/usr/bin/env bash
# Asked by Bazel for what a build should know about its sources.
commit=$(git rev-parse --short=12 HEAD 2>/dev/null) || commit=unknown
[[ $commit == unknown || -z $(git status --porcelain --untracked-files=no 2>/dev/null) ]] || commit+=+
echo "STABLE_COMMIT $commit"
