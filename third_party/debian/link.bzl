"""How gRPC, protobuf and Abseil are linked: shared by default, static in a bundle."""

load("@abseil//:libraries.bzl", "ABSEIL")

SHARED_GRPC = [
    "-Wl,--as-needed",
    "-lgrpc++",
    "-lgrpc",
    "-lgpr",
    "-lprotobuf",
] + ["-l" + name for name in ABSEIL] + ["-Wl,--no-as-needed"]

BUNDLE_GRPC = ["-Wl,--start-group"] + ["-l:lib%s.a" % name for name in [
    "grpc++",
    "grpc",
    "gpr",
    "protobuf",
    "address_sorting",
    "re2",
    "upb",
    "cares",
    "ssl",
    "crypto",
]] + ["-l:lib%s.a" % name for name in ABSEIL] + ["-Wl,--end-group", "-lz", "-ldl"]
