#include "compress/codec.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace thinwire {

absl::Status Codec::RefuseParts(absl::Span<const StoredTensor> parts) const {
  const auto spelled = [](std::string* text, const StoredTensor& part) {
    absl::StrAppend(text, part.name, " ", part.dtype, " [", absl::StrJoin(part.shape, ", "), "]");
  };
  return absl::InvalidArgumentError(absl::StrCat("state: ", absl::StrJoin(parts, ", ", spelled),
                                                 ", want what codec ", spec_.ToString(),
                                                 " leaves to its next message"));
}

}  // namespace thinwire
