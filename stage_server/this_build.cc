#include "stage_server/this_build.h"

#include <google/protobuf/stubs/common.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/build_info.h"
#include "grpcpp/grpcpp.h"
#include "hwy/highway.h"
#include "hwy/targets.h"
#include "nn/cpu/ops.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace thinwire {
namespace {

// Returns the best SIMD target that this processor has. Highway numbers targets so that the lowest
// bit is the best. x & -x isolates the lowest set bit: -x inverts x and adds one, which carries up
// to that bit and leaves it set.
std::string SimdTarget() {
  const int64_t supported = hwy::SupportedTargets();
  return hwy::TargetName(supported & -supported);
}

}  // namespace

BuildInfo ThisBuild() {
  BuildInfo build;
  build.set_commit(BuildCommit());
  build.set_build_id(BuildId());
  build.set_cpu_model(CpuModel());
  build.set_simd_target(SimdTarget());
  build.set_onednn_isa(CpuInstructionSet());
  auto& libraries = *build.mutable_libraries();
  libraries["grpc"] = grpc::Version();
  libraries["protobuf"] = google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION);
  const dnnl_version_t* dnnl = dnnl_version();
  libraries["onednn"] = absl::StrCat(dnnl->major, ".", dnnl->minor, ".", dnnl->patch);
  libraries["highway"] = absl::StrCat(HWY_MAJOR, ".", HWY_MINOR, ".", HWY_PATCH);
  return build;
}

}  // namespace thinwire
