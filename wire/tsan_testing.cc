// Settings of ThreadSanitizer for these tests. Debian's gRPC and Abseil are not instrumented. So
// the sanitizer sees neither the order that their locks make nor the hand-over between a Start call
// and its reaction. Our own link code locks std::mutex, which it does see.

extern "C" const char* __tsan_default_options() {
  return "ignore_noninstrumented_modules=1 halt_on_error=0";
}

// `race_top` matches the innermost frame only, so races in our handlers, which gRPC calls, are
// still reported.
extern "C" const char* __tsan_default_suppressions() {
  return "race_top:grpc::\n"
         "race_top:libgrpc\n"
         "race_top:libgpr\n"
         "race_top:libabsl_\n"
         "race_top:google::protobuf\n"
         // gRPC calls these after everything before, in an order made by its own atomics.
         "race_top:ServerReactor::OnDone\n"
         "race:ReleaseOwner\n"
         "race_top:ExtendCrc32cAndCopy\n";
}
