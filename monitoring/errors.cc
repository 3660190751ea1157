#include "monitoring/errors.h"

#include <algorithm>
#include <iterator>

namespace thinwire {

namespace {

struct NamedKind {
  const char* name;
  absl::StatusCode code;  // kOk where no code tells the kind
};
// By ErrorKind.
constexpr NamedKind kKinds[] = {{"data_loss", absl::StatusCode::kDataLoss},
                                {"deadline", absl::StatusCode::kDeadlineExceeded},
                                {"failed_precondition", absl::StatusCode::kFailedPrecondition},
                                {"internal", absl::StatusCode::kInternal},
                                {"invalid_argument", absl::StatusCode::kInvalidArgument},
                                {"lease_expired", absl::StatusCode::kOk},
                                {"out_of_range", absl::StatusCode::kOutOfRange},
                                {"peer_gone", absl::StatusCode::kUnavailable},
                                {"resource_exhausted", absl::StatusCode::kResourceExhausted},
                                {"other", absl::StatusCode::kUnknown}};
static_assert(std::size(kKinds) == static_cast<size_t>(ErrorKind::kOther) + 1);

}  // namespace

const char* Name(ErrorKind kind) { return kKinds[static_cast<size_t>(kind)].name; }

ErrorKind KindOf(const absl::Status& error) {
  const auto* const kind =
      std::find_if(std::begin(kKinds), std::end(kKinds) - 1,
                   [&error](const NamedKind& one) { return one.code == error.code(); });
  return error.ok() ? ErrorKind::kOther : static_cast<ErrorKind>(kind - kKinds);
}

ErrorCounter::ErrorCounter(const prometheus::Labels& labels, prometheus::Registry* registry) {
  auto& family = prometheus::BuildCounter()
                     .Name("thinwire_errors_total")
                     .Help("What went wrong, by kind.")
                     .Register(*registry);
  for (int i = 0; i <= static_cast<int>(ErrorKind::kOther); ++i) {
    const auto kind = static_cast<ErrorKind>(i);
    prometheus::Labels all = labels;
    all["kind"] = Name(kind);
    series_[kind] = &family.Add(all);
  }
}

}  // namespace thinwire
