#include "wire/message.h"

#include "absl/strings/str_cat.h"
#include "wire/message_kind.h"

namespace thinwire {
namespace {

const char* NameOf(Direction direction) {
  switch (direction) {
    case DIRECTION_ACTIVATION:
      return "activation";
    case DIRECTION_GRADIENT:
      return "gradient";
    default:
      return "unknown direction";
  }
}

}  // namespace

std::string MessageKey::ToString() const {
  const MessageKind& kind = KindOf(phase);
  if (IsOfReplicas(phase)) {
    return absl::StrCat(kind.name, " of replica ", microbatch, ", piece ", cut, ", epoch ", epoch,
                        ", step ", step);
  }
  if (phase == PHASE_READY) {
    return absl::StrCat(kind.name, " to replica ", microbatch, ", epoch ", epoch, ", step ", step);
  }
  if (HasSamples(phase) || IsTaken(phase)) {
    const char* const what = IsTaken(phase) ? "at" : NameOf(direction);
    return absl::StrCat(kind.name, " ", what, IsTaken(phase) ? " cut " : " of cut ", cut,
                        ", epoch ", epoch, ", step ", step, ", microbatch ", microbatch);
  }
  const bool is_with = direction == DIRECTION_ACTIVATION;
  return absl::StrCat(kind.name, " ", is_with ? kind.with_activations : kind.against_activations,
                      " cut ", cut, ", epoch ", epoch, ", step ", step);
}

}  // namespace thinwire
