#include "config/swap.h"

#include "base/status.h"
#include "config/checks.h"

namespace thinwire {
namespace {

constexpr Named<SwapTo> kNames[] = {
    {SwapTo::kDevice, "device"}, {SwapTo::kHost, "host"}, {SwapTo::kDisk, "disk"}};

}  // namespace

NameTable<SwapTo> TableOf(SwapTo) { return {"swap", kNames}; }

absl::Status CheckSwap(const Experiment& experiment) {
  return CheckName("pipeline.swap", "place", experiment.pipeline().swap(),
                   NamesOf(AllOf<SwapTo>()));
}

absl::StatusOr<SwapTo> SwapFrom(const Experiment& experiment) {
  SwapTo to{};
  RETURN_IF_ERROR(FromName(experiment.pipeline().swap(), &to));
  return to;
}

}  // namespace thinwire
