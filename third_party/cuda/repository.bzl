"""The CUDA toolkit of this machine as targets: headers, libraries, the path of nvcc."""

_EMPTY = """
package(default_visibility = ["//visibility:public"])
[cc_library(name = name) for name in ["headers", "cudart", "cublas", "cudnn"]]
"""

_FOUND = """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "headers",
    hdrs = glob(["include/*.h", "include/*.hpp"]),
    # cuda_fp16.h includes <nv/target>, which lies in include/cccl.
    includes = ["include", "include/cccl"],
)

cc_library(
    name = "cudart",
    linkopts = ["-L{lib}", "-l:libcudart_static.a", "-ldl", "-lrt", "-lpthread"],
    deps = [":headers"],
)

# Where libraries are looked for: in LD_LIBRARY_PATH (Python's wheels), beside the program, in the
# toolkit. A bundle has DT_RPATH, which would come before LD_LIBRARY_PATH, and goes to machines with
# other toolkits: it names none.
_RUN_PATH = ["-Wl,-rpath,$$ORIGIN"] + select({{
    "@debian//:bundle": [],
    "//conditions:default": ["-Wl,--enable-new-dtags", "-Wl,-rpath,{lib}"],
}})

# By -L and -l and not as inputs: cublasLt alone is half a gigabyte.
cc_library(
    name = "cublas",
    linkopts = ["-L{lib}", "-lcublas", "-lcublasLt"] + _RUN_PATH,
    deps = [":headers"],
)

cc_library(
    name = "cudnn",
    linkopts = ["-L{lib}", "-lcudnn"] + _RUN_PATH,
    deps = [":headers"],
)
"""

def _cuda_repository(repository_ctx):
    home = repository_ctx.os.environ.get("CUDA_HOME", "/usr/local/cuda")
    nvcc = repository_ctx.path(home + "/bin/nvcc")
    if nvcc.exists:
        repository_ctx.symlink(home + "/include", "include")
        repository_ctx.file("BUILD", _FOUND.format(lib = home + "/lib64"))
    else:
        repository_ctx.file("BUILD", _EMPTY)
    repository_ctx.file("toolkit.bzl", 'NVCC = "%s"\nFOUND = %s\n' % (nvcc, nvcc.exists))

cuda_repository = repository_rule(
    implementation = _cuda_repository,
    configure = True,
    doc = "Finds the toolkit in $CUDA_HOME, else /usr/local/cuda. Every library is empty where there is none.",
    environ = ["CUDA_HOME"],
    local = True,
)
