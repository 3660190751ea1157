#include "wire/message.h"

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

const char* NameOf(Phase phase) {
  switch (phase) {
    case PHASE_TRAIN:
      return "training";
    case PHASE_EVALUATE_COMPRESSED:
      return "compressed evaluation";
    case PHASE_EVALUATE_UNCOMPRESSED:
      return "uncompressed evaluation";
    case PHASE_RECALIBRATE:
      return "recalibration";
    case PHASE_EVALUATE_RECALIBRATED:
      return "recalibrated evaluation";
    case PHASE_GENERATE:
      return "text";
    default:
      return "unknown phase";
  }
}

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
  if (phase == PHASE_GRADIENT_NORM) {
    const char* const which = direction == DIRECTION_ACTIVATION ? "before" : "of all stages at";
    return absl::StrCat("sum of squares of gradients ", which, " cut ", cut, ", epoch ", epoch,
                        ", step ", step);
  }
  if (phase == PHASE_BASIS) {
    const char* const side = direction == DIRECTION_ACTIVATION ? "before" : "behind";
    return absl::StrCat("gradient of the basis ", side, " cut ", cut, ", epoch ", epoch, ", step ",
                        step);
  }
  return absl::StrCat(NameOf(phase), " ", NameOf(direction), " of cut ", cut, ", epoch ", epoch,
                      ", step ", step, ", microbatch ", microbatch);
}

}  // namespace thinwire
