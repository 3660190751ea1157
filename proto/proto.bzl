"""protoc and its gRPC plugin, from Debian, as one rule."""

def cc_grpc_library(name, srcs, deps = [], visibility = ["//visibility:public"]):
    """C++ messages, services and gRPC stubs of `srcs`, included as "proto/NAME.pb.h".

    Args:
      name: the library.
      srcs: .proto files of this package.
      deps: cc_grpc_library targets of this package whose files are imported.
      visibility: as usual.
    """
    stems = [src[:-len(".proto")] for src in srcs]
    headers = [s + end for s in stems for end in (".pb.h", ".grpc.pb.h")]
    sources = [s + end for s in stems for end in (".pb.cc", ".grpc.pb.cc")]
    native.filegroup(
        name = name + "_srcs",
        srcs = srcs + [":" + dep.lstrip(":") + "_srcs" for dep in deps],
    )
    native.genrule(
        name = name + "_generated",
        srcs = [name + "_srcs"],
        outs = headers + sources,
        cmd = "protoc -I. --cpp_out=$(GENDIR) --grpc_out=$(GENDIR) " +
              "--plugin=protoc-gen-grpc=$$(command -v grpc_cpp_plugin) " +
              " ".join(["proto/" + src for src in srcs]),
    )
    native.cc_library(
        name = name,
        srcs = sources,
        hdrs = headers,
        visibility = visibility,
        deps = [":" + dep.lstrip(":") for dep in deps] + ["@debian//:grpc"],
    )
