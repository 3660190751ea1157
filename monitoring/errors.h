// thinwire_errors_total: numbers of errors, by kind.
#pragma once

#include <map>

#include "absl/status/status.h"
#include "prometheus/counter.h"
#include "prometheus/registry.h"

namespace thinwire {

// Kinds of error.
enum class ErrorKind {
  kDataLoss,
  kDeadline,
  kFailedPrecondition,
  kInternal,
  kInvalidArgument,
  kLeaseExpired,
  kOutOfRange,
  kPeerGone,
  kResourceExhausted,
  kOther,
};

// Returns "data_loss", "deadline", ...
const char* Name(ErrorKind kind);

// Returns the kind of an error from its code, which cannot tell that a lease expired.
ErrorKind KindOf(const absl::Status& error);

// Counts errors.
class ErrorCounter {
 public:
  // Makes a series for each kind, starting at zero. `registry` must outlive the counter. Count is
  // thread-safe.
  ErrorCounter(const prometheus::Labels& labels, prometheus::Registry* registry);
  void Count(ErrorKind kind) { series_.at(kind)->Increment(); }

 private:
  std::map<ErrorKind, prometheus::Counter*> series_;
};

}  // namespace thinwire
