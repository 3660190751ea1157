"""How gRPC, protobuf and Abseil are linked: shared by default, static in a bundle, where OpenSSL is static
too, and in an image, where it is the system's."""

load("@abseil//:libraries.bzl", "ABSEIL")

def _shared(names):
    return ["-Wl,--as-needed"] + ["-l" + name for name in names] + ["-Wl,--no-as-needed"]

SHARED_GRPC = _shared(["grpc++", "grpc", "gpr", "protobuf"] + ABSEIL)

# For a shared library, which Debian's static Abseil cannot be part of.
SHARED_ABSEIL = _shared(ABSEIL)

_STATIC_GRPC = ["-l:lib%s.a" % name for name in [
    "grpc++",
    "grpc",
    "gpr",
    "protobuf",
    "address_sorting",
    "re2",
    "upb",
    "cares",
] + ABSEIL]

STATIC_CRYPTO = ["-l:libcrypto.a"]
SHARED_CRYPTO = ["-lcrypto"]

BUNDLE_GRPC = (["-Wl,--start-group"] + _STATIC_GRPC + ["-l:libssl.a"] + STATIC_CRYPTO +
               ["-Wl,--end-group", "-lz", "-ldl"])

IMAGE_GRPC = (["-Wl,--start-group"] + _STATIC_GRPC + ["-Wl,--end-group", "-lssl"] + SHARED_CRYPTO +
              ["-lz", "-ldl"])
