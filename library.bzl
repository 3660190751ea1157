"""The usual library, a header and its source; the tests of a folder."""

def library(name, srcs = None, hdrs = None, deps = [], **kwargs):
    """A cc_library.

    Args:
      name: of the library.
      srcs: by default NAME.cc, where there is one.
      hdrs: by default NAME.h, where there is one.
      deps: of the library.
      **kwargs: of the cc_library.
    """
    native.cc_library(
        name = name,
        srcs = native.glob([name + ".cc"]) if srcs == None else srcs,
        hdrs = native.glob([name + ".h"]) if hdrs == None else hdrs,
        deps = deps,
        linkstatic = True,  # nothing wants the shared library, which would be linked besides
        **kwargs
    )

def folder_library(name, deps, apart = [], alone = [], **kwargs):
    """The cc_library of every source and header beside the BUILD file but main.cc and what is for tests.

    Args:
      name: of the library.
      deps: as usual.
      apart: names of libraries that are targets of their own.
      alone: names of its sources that cannot be compiled with others.
      **kwargs: of the cc_library.
    """
    others = [other + suffix for other in apart for suffix in (".cc", ".h")]
    by_itself = [source + ".cc" for source in alone]
    library(
        name = name,
        srcs = _joined(name, native.glob(
            ["*.cc"],
            exclude = others + by_itself + ["main.cc", "*_bench.cc", "*_fuzz.cc", "*_test.cc", "*_testing.cc"],
        ), suffix = ".cc", apart = 0) + by_itself,
        hdrs = native.glob(["*.h"], exclude = others + ["*_testing.h"]),
        deps = deps,
        **kwargs
    )

def tests(deps, apart = [], size = "medium", **kwargs):
    """The cc_test `tests` of every *_test.cc beside the BUILD file. To run some of them:
    `bazel test //folder:tests --test_filter='Suite.*'`.

    Args:
      deps: besides GoogleTest.
      apart: names of tests that are targets of their own.
      size: as usual.
      **kwargs: of the cc_test.
    """
    test(
        name = "tests",
        size = size,
        srcs = native.glob(["*_test.cc"], exclude = [other + ".cc" for other in apart]),
        deps = deps,
        **kwargs
    )

def test(name, deps, size = "small", srcs = None, tags = [], **kwargs):
    """A cc_test with GoogleTest's main, with the tag `computes` or `decides` by its folder.

    Args:
      name: of the test.
      deps: besides GoogleTest.
      size: as usual.
      srcs: NAME.cc by default.
      tags: besides that of the folder.
      **kwargs: of the cc_test.
    """
    folder = native.package_name().split("/")[0]
    native.cc_test(
        name = name,
        size = size,
        srcs = _joined(name, [name + ".cc"] if srcs == None else srcs),
        tags = tags + ["computes" if folder in _COMPUTE else "decides"],
        deps = deps + ["@debian//:gtest_main"],
        **kwargs
    )

def shared_test(name, deps, srcs = None, test_deps = [], visibility = None, **kwargs):
    """A test of which a larger program has the cases too; they are compiled once.

    Makes `:NAME_cases`, a library for that program, and the cc_test.

    Args:
      name: of the test.
      deps: of the cases, besides GoogleTest.
      srcs: NAME.cc by default.
      test_deps: what the cc_test has and the larger program brings itself.
      visibility: of the cases.
      **kwargs: of the cc_test.
    """
    native.cc_library(
        name = name + "_cases",
        testonly = True,
        srcs = _joined(name, [name + ".cc"] if srcs == None else srcs),
        alwayslink = True,
        linkstatic = True,
        visibility = visibility,
        deps = deps + ["@debian//:gtest"],
    )
    test(name, deps = [":" + name + "_cases"] + test_deps, srcs = [], **kwargs)

# Folders whose results may depend on how they are compiled; the tests of the others run with sanitizers only
# in tests/run.sh.
_COMPUTE = ["base", "compress", "data", "nn", "schedule", "stage_server", "tensor", "tests", "third_party"]

# Most of a compilation reads headers, so several sources are compiled as one; not all of a folder, so
# that a changed one does not compile a hundred.
_MOST_JOINED = 10

def _joined(name, srcs, suffix = "_test.cc", apart = 1):
    """Names of sources written from up to _MOST_JOINED of `srcs` each; `apart` as join_sources.awk has it."""
    if len(srcs) < 2:
        return srcs
    sources = len(range(0, len(srcs), _MOST_JOINED))
    joined = []
    for source in range(sources):
        joined.append("%s_%d%s" % (name, source, suffix))
        parts = srcs[source * len(srcs) // sources:(source + 1) * len(srcs) // sources]
        native.genrule(
            name = "%s_%d_source" % (name, source),
            testonly = suffix == "_test.cc",
            srcs = parts,
            outs = [joined[-1]],
            cmd = "awk -v apart=%d -f $(location //:join_sources.awk) %s >$@" % (
                apart,
                " ".join(["$(location %s)" % part for part in parts]),
            ),
            tools = ["//:join_sources.awk"],
        )
    return joined
