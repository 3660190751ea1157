"""CUDA code as Bazel targets, compiled twice: for the GPU and for the emulator."""


load("//third_party/cuda:compile.bzl", "cuda_objects")
load("@debian//:link.bzl", "SHARED_ABSEIL")

# target_compatible_with of targets that want the CUDA toolkit.
ONLY_WITH_CUDA = select({
    "//third_party/cuda:enabled": [],
    "//conditions:default": ["//third_party/cuda:never"],
})

def _emulated(label):
    if ":" in label:
        return label + "_emulated"
    return "%s:%s_emulated" % (label, label.split("/")[-1])

def cuda_library(name, srcs = None, hdrs = None, deps = [], cuda_deps = [], **kwargs):
    """Device code and the host code that launches it.

    Makes `:name`, by nvcc, which exists with --config=cuda only, and `:name_emulated`, by the
    host's compiler against third_party/cuda_on_host. Both are used as cc_library targets are.

    Args:
      name: the target for the GPU.
      srcs: .cu files, .cc files that may include <cuda_runtime.h>, headers of their own; by default
        NAME.cu and NAME.cc, where there are such.
      hdrs: .h and .cuh files; by default NAME.h, where there is one.
      deps: ordinary C++ libraries.
      cuda_deps: other cuda_library targets; `:name_emulated` depends on their `_emulated` twins.
      **kwargs: attributes of both cc_library targets: visibility, testonly, tags, ...
    """
    if srcs == None:
        srcs = native.glob([name + ".cc", name + ".cu"])
    if hdrs == None:
        hdrs = native.glob([name + ".h"])
    device = [source for source in srcs if source.endswith(".cu")]
    own_hdrs = [source for source in srcs if source.endswith(".h") or source.endswith(".cuh")]
    host = [source for source in srcs if source not in device and not source.endswith(".cuh")]
    textual = [source for source in own_hdrs if source not in host]
    common = {key: kwargs[key] for key in ["tags", "testonly"] if key in kwargs}
    found = deps + cuda_deps + ["@cuda//:cudart"]

    if device:
        cuda_objects(
            name = name + "_nvcc",
            srcs = device,
            hdrs = hdrs + own_hdrs,
            target_compatible_with = ONLY_WITH_CUDA,
            deps = found,
            visibility = ["//visibility:private"],
            **common
        )
    native.cc_library(
        name = name,
        srcs = host,
        hdrs = hdrs,
        linkstatic = True,
        target_compatible_with = ONLY_WITH_CUDA,
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
        copts = ["-Wno-unknown-pragmas", "-Wno-pass-failed"],  # nvcc unrolls what others need not
        textual_hdrs = device + textual,
        deps = deps + [_emulated(dep) for dep in cuda_deps] + ["//third_party/cuda_on_host"],
        **kwargs
    )

def backend_plugin(name, deps, srcs = [], emulated = False, **kwargs):
    """A shared library that shows one symbol, thinwire_backend (backend/plugin.h), and needs no other of its host.

    Args:
      name: the name of the file, "libthinwire_cuda.so".
      deps: its libraries, all of cuda_library's `:name` or all `:name_emulated`.
      srcs: .cc files.
      emulated: made of `:name_emulated` targets; otherwise it exists with --config=cuda only.
      **kwargs: further attributes of the cc_binary.
    """
    native.cc_binary(
        name = name,
        srcs = srcs,
        additional_linker_inputs = ["//third_party/cuda:plugin.lds"],
        linkopts = [
            "-Wl,--version-script=$(location //third_party/cuda:plugin.lds)",
            "-Wl,-z,defs",
        ] + SHARED_ABSEIL,
        linkshared = True,
        target_compatible_with = [] if emulated else ONLY_WITH_CUDA,
        deps = deps,
        **kwargs
    )
