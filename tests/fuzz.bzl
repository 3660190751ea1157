"""Fuzz targets that run in every build: without --config=fuzz they replay their corpus."""

def fuzz_test(name, srcs, corpus, deps, beginnings = 64, mutations = 20000, tags = []):
    """A test of LLVMFuzzerTestOneInput.

    `bazel test` replays the corpus and changed copies of it; to search for new inputs,
    `bazel run --config=fuzz //folder:NAME -- -runs=-1 -max_total_time=60`.

    Args:
      name: the test.
      srcs: with LLVMFuzzerTestOneInput.
      corpus: a folder of this package, one input a file.
      deps: as usual.
      beginnings: how many of each file; libFuzzer ignores this flag and the next.
      mutations: how many changed copies; libFuzzer makes its own.
      tags: as usual.
    """
    native.cc_test(
        name = name,
        size = "small",
        srcs = srcs,
        args = [
            "-runs=0",
            "-beginnings=%d" % beginnings,
            "-mutations=%d" % mutations,
            native.package_name() + "/" + corpus,
        ],
        data = native.glob([corpus + "/**"]),
        linkopts = select({
            "@debian//:fuzz": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
        tags = tags,
        deps = deps + select({
            "@debian//:fuzz": [],
            "//conditions:default": ["//tests/fuzz:replay"],
        }),
    )
