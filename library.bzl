"""The usual library: a header, its source, and its test beside them."""

def library(name, srcs = None, hdrs = None, deps = [], test_deps = None, test = {}, **kwargs):
    """A cc_library and, with `test_deps`, the cc_test `NAME_test` of NAME_test.cc.

    Args:
      name: of the library; its label stands in the test's deps by itself.
      srcs: by default NAME.cc, where there is one.
      hdrs: by default NAME.h, where there is one.
      deps: of the library.
      test_deps: of the test, besides the library and GoogleTest; None: there is no test.
      test: further attributes of the test (data, shard_count, size, tags, ...).
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
    if test_deps != None:
        _test(name + "_test", deps = [":" + name] + test_deps, **test)

def test(name, deps, **kwargs):
    """A cc_test with GoogleTest's main.

    Args:
      name: of the test; its source is NAME.cc unless `srcs` says otherwise.
      deps: besides GoogleTest.
      **kwargs: of the cc_test; `size` is small by default.
    """
    _test(name, deps, **kwargs)

def shared_test(name, deps, test_deps = [], **kwargs):
    """A test of which a larger program has the cases too; they are compiled once.

    Makes `:NAME_cases`, a library for that program, and the cc_test.

    Args:
      name: of the test; its source is NAME.cc.
      deps: of the cases, besides GoogleTest.
      test_deps: what the cc_test has and the larger program brings itself.
      **kwargs: of the cc_test.
    """
    native.cc_library(
        name = name + "_cases",
        testonly = True,
        srcs = [name + ".cc"],
        alwayslink = True,
        linkstatic = True,
        deps = deps + ["@debian//:gtest"],
    )
    _test(name, deps = [":" + name + "_cases"] + test_deps, srcs = [], **kwargs)

def _test(name, deps, size = "small", srcs = None, **kwargs):
    native.cc_test(
        name = name,
        size = size,
        srcs = [name + ".cc"] if srcs == None else srcs,
        deps = deps + ["@debian//:gtest_main"],
        **kwargs
    )
