"""The CUDA toolkit of this machine as targets: headers, libraries, the path of nvcc."""

_EMPTY = """
package(default_visibility = ["//visibility:public"])
[cc_library(name = name) for name in ["headers", "cudart", "cublas", "cudnn", "cudnn_frontend"]]
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

# NVIDIA's cudnn-frontend, headers alone; empty where there is none.
cc_library(
    name = "cudnn_frontend",
    # Some of them name others as in ../include.
    hdrs = glob(["cudnn_frontend/include/**"]),
    defines = [{frontend_define}],
    includes = ["cudnn_frontend/include"],
    deps = [":cudnn"],
)
"""

# A later one wants NVRTC at link time.
_OLDEST_FRONTEND, _NEWEST_FRONTEND = (1, 14), (1, 18)

def _version(text):
    """(MAJOR, MINOR) by the macros of cudnn_frontend_version.h."""
    numbers = {}
    for line in text.split("\n"):
        words = line.split(" ")
        if len(words) == 3 and words[0] == "#define" and words[2].isdigit():
            numbers[words[1].split("_")[2]] = int(words[2])
    return (numbers.get("MAJOR", 0), numbers.get("MINOR", 0))

def _frontend(repository_ctx, home):
    """The folder of cudnn_frontend.h: $CUDNN_FRONTEND, or in the toolkit. None: of no use there."""
    named = repository_ctx.os.environ.get("CUDNN_FRONTEND", "")
    for folder in [named] if named else [home + "/include", "/usr/include"]:
        header = repository_ctx.path(folder + "/cudnn_frontend_version.h")
        if header.exists:
            version = _version(repository_ctx.read(header))
            if _OLDEST_FRONTEND <= version and version <= _NEWEST_FRONTEND:
                return folder
            print("cudnn-frontend %s.%s in %s is not used, want 1.14 to 1.18" % (version[0], version[1], folder))
        elif named:
            fail("CUDNN_FRONTEND: %s has no cudnn_frontend.h" % folder)
    return None

def _cuda_repository(repository_ctx):
    home = repository_ctx.os.environ.get("CUDA_HOME", "/usr/local/cuda")
    nvcc = repository_ctx.path(home + "/bin/nvcc")
    if nvcc.exists:
        repository_ctx.symlink(home + "/include", "include")
        frontend = _frontend(repository_ctx, home)
        if frontend:
            for name in repository_ctx.path(frontend).readdir():
                if name.basename.startswith("cudnn_frontend") or name.basename == "cudnn_backend_base.h":
                    repository_ctx.symlink(name, "cudnn_frontend/include/" + name.basename)
        repository_ctx.file("BUILD", _FOUND.format(
            lib = home + "/lib64",
            frontend_define = '"THINWIRE_CUDNN_FRONTEND"' if frontend else "",
        ))
    else:
        repository_ctx.file("BUILD", _EMPTY)
    repository_ctx.file("toolkit.bzl", 'NVCC = "%s"\nFOUND = %s\n' % (nvcc, nvcc.exists))

cuda_repository = repository_rule(
    implementation = _cuda_repository,
    configure = True,
    doc = "Finds the toolkit in $CUDA_HOME, else /usr/local/cuda. Every library is empty where there is none.",
    environ = ["CUDA_HOME", "CUDNN_FRONTEND"],
    local = True,
)
