// thinwire_errors_total: what went wrong, by kind.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "prometheus/counter.h"
#include "prometheus/registry.h"

namespace thinwire {

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

// "data_loss", "deadline", ...
const char* Name(ErrorKind kind);

// Of an error; by its code, which does not tell that a lease expired.
ErrorKind KindOf(const absl::Status& error);

class ErrorCounter {
 public:
  // A series of each kind, from zero. `registry` outlives the counter. Counting: any thread.
  ErrorCounter(const prometheus::Labels& labels, prometheus::Registry* registry);
  void Count(ErrorKind kind) { series_.at(kind)->Increment(); }

 private:
  std::map<ErrorKind, prometheus::Counter*> series_;
};

}  // namespace thinwire
