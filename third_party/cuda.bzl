"""CUDA code as Bazel targets, compiled twice: for the GPU and for the emulator."""

load("//third_party/cuda:compile.bzl", "cuda_objects")

_ONLY_WITH_CUDA = select({
    "//third_party/cuda:enabled": [],
    "//conditions:default": ["//third_party/cuda:never"],
})

def _emulated(label):
    if ":" in label:
        return label + "_emulated"
    return "%s:%s_emulated" % (label, label.split("/")[-1])

def cuda_library(name, srcs = [], hdrs = [], deps = [], cuda_deps = [], **kwargs):
    """Device code and the host code that launches it.

    Makes `:name`, by nvcc, which exists with --config=cuda only, and `:name_emulated`, by the
    host's compiler against third_party/cuda_on_host. Both are used as cc_library targets are.

    Args:
      name: of the target for the GPU.
      srcs: .cu files, and .cc files that may include <cuda_runtime.h>.
      hdrs: .h and .cuh files.
      deps: ordinary C++ libraries.
      cuda_deps: other cuda_library targets; `:name_emulated` depends on their `_emulated` twins.
      **kwargs: of both cc_library targets: visibility, testonly, tags, ...
    """
    device = [source for source in srcs if source.endswith(".cu")]
    host = [source for source in srcs if not source.endswith(".cu")]
    common = {key: kwargs[key] for key in ["tags", "testonly"] if key in kwargs}
    found = deps + cuda_deps + ["@cuda//:cudart"]

    if device:
        cuda_objects(
            name = name + "_nvcc",
            srcs = device,
            hdrs = hdrs,
            target_compatible_with = _ONLY_WITH_CUDA,
            deps = found,
            visibility = ["//visibility:private"],
            **common
        )
    native.cc_library(
        name = name,
        srcs = host,
        hdrs = hdrs,
        linkstatic = True,
        target_compatible_with = _ONLY_WITH_CUDA,
        deps = found + ([name + "_nvcc"] if device else []),
        **kwargs
    )

    wrapped = []
    for source in device:
        wrapper = "_emulated/%s/%s.cc" % (name, source[:-len(".cu")])
        native.genrule(
            name = "%s_%s_emulated_source" % (name, source[:-len(".cu")].replace("/", "_")),
            outs = [wrapper],
            cmd = "echo '#include \"%s/%s\"' > $@" % (native.package_name(), source),
            visibility = ["//visibility:private"],
            **common
        )
        wrapped.append(wrapper)
    native.cc_library(
        name = name + "_emulated",
        srcs = host + wrapped,
        hdrs = hdrs,
        copts = ["-Wno-unknown-pragmas"],
        textual_hdrs = device,
        deps = deps + [_emulated(dep) for dep in cuda_deps] + ["//third_party/cuda_on_host"],
        **kwargs
    )
