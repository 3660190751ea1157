"""nvcc as a rule."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@cuda//:toolkit.bzl", "FOUND", "NVCC")

# --define=cuda_arch=all: cubins for the GPUs of today, PTX for those to come.
_EVERY_ARCH = [
    "-gencode=arch=compute_%s,code=sm_%s" % (arch, arch)
    for arch in ["80", "86", "89", "90a"]
] + ["-gencode=arch=compute_90,code=compute_90"]

# --define=cuda_arch=80 or =80,90a; by default the H100's and H200's.
def _arch_flags(ctx):
    wanted = ctx.var.get("cuda_arch", "90a")
    if wanted == "all":
        return _EVERY_ARCH
    return ["-gencode=arch=compute_%s,code=sm_%s" % (arch, arch) for arch in wanted.split(",")]

_FLAGS = [
    "-std=c++17",
    "-O3",
    # Sums and products are rounded one by one, as on the host.
    "--fmad=false",
    "-lineinfo",
    "-Xcompiler=-fPIC,-Wall,-Wextra,-ffp-contract=off,-march=x86-64-v2,-fno-omit-frame-pointer",
]

def _cuda_objects(ctx):
    if not FOUND:
        fail("--config=cuda wants a CUDA toolkit: %s does not exist; set CUDA_HOME" % NVCC)
    toolchain = find_cpp_toolchain(ctx)
    deps = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])
    headers = deps.compilation_context
    arguments = ctx.actions.args()
    is_bundle = ctx.var.get("bundle") == "1"  # goes without line numbers, which profilers want
    arguments.add_all([flag for flag in _FLAGS if flag != "-lineinfo" or not is_bundle])
    if "-Werror" in ctx.fragments.cpp.copts:
        arguments.add_all(["-Werror=all-warnings", "-Xcompiler=-Werror"])
    arguments.add_all(_arch_flags(ctx))
    arguments.add(toolchain.compiler_executable, format = "-ccbin=%s")
    arguments.add_all([".", ctx.bin_dir.path], before_each = "-I")
    arguments.add_all(headers.defines, before_each = "-D")
    arguments.add_all(headers.quote_includes, before_each = "-I")
    arguments.add_all(headers.includes, before_each = "-I")
    arguments.add_all(headers.system_includes, before_each = "-isystem")
    objects = []
    for source in ctx.files.srcs:
        stem = source.basename[:-len(".cu")]
        object = ctx.actions.declare_file("%s/%s.o" % (ctx.label.name, stem))
        ctx.actions.run(
            outputs = [object],
            inputs = depset([source] + ctx.files.hdrs, transitive = [headers.headers]),
            executable = NVCC,
            arguments = [arguments, "-c", source.path, "-o", object.path],
            mnemonic = "CudaCompile",
            progress_message = "Compiling %s" % source.short_path,
            use_default_shell_env = True,
        )
        objects.append(object)
    compiled = depset(objects)
    linking_context, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        cc_toolchain = toolchain,
        compilation_outputs = cc_common.create_compilation_outputs(
            objects = compiled,
            pic_objects = compiled,
        ),
        disallow_dynamic_library = True,
        feature_configuration = cc_common.configure_features(ctx = ctx, cc_toolchain = toolchain),
        linking_contexts = [deps.linking_context],
        name = ctx.label.name,
    )
    return [
        DefaultInfo(files = compiled),
        CcInfo(compilation_context = headers, linking_context = linking_context),
    ]

cuda_objects = rule(
    implementation = _cuda_objects,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"], mandatory = True),
        "hdrs": attr.label_list(allow_files = True),
        "deps": attr.label_list(providers = [CcInfo]),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    doc = ".cu files as a library to link; position-independent always.",
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
