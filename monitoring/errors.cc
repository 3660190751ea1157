#include "monitoring/errors.h"

namespace thinwire {

const char* Name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kDataLoss:
      return "data_loss";
    case ErrorKind::kDeadline:
      return "deadline";
    case ErrorKind::kFailedPrecondition:
      return "failed_precondition";
    case ErrorKind::kInternal:
      return "internal";
    case ErrorKind::kInvalidArgument:
      return "invalid_argument";
    case ErrorKind::kLeaseExpired:
      return "lease_expired";
    case ErrorKind::kOutOfRange:
      return "out_of_range";
    case ErrorKind::kPeerGone:
      return "peer_gone";
    case ErrorKind::kResourceExhausted:
      return "resource_exhausted";
    case ErrorKind::kOther:
      return "other";
  }
  return "other";
}

ErrorKind KindOf(const absl::Status& error) {
  switch (error.code()) {
    case absl::StatusCode::kDataLoss:
      return ErrorKind::kDataLoss;
    case absl::StatusCode::kDeadlineExceeded:
      return ErrorKind::kDeadline;
    case absl::StatusCode::kFailedPrecondition:
      return ErrorKind::kFailedPrecondition;
    case absl::StatusCode::kInternal:
      return ErrorKind::kInternal;
    case absl::StatusCode::kInvalidArgument:
      return ErrorKind::kInvalidArgument;
    case absl::StatusCode::kOutOfRange:
      return ErrorKind::kOutOfRange;
    case absl::StatusCode::kUnavailable:
      return ErrorKind::kPeerGone;
    case absl::StatusCode::kResourceExhausted:
      return ErrorKind::kResourceExhausted;
    default:
      return ErrorKind::kOther;
  }
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
