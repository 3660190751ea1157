#include "coordinator/fleet/arrivals.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace thinwire {
namespace {

constexpr absl::Duration kFirst = absl::Seconds(3);
constexpr absl::Duration kEvery = absl::Seconds(10);
constexpr int kMostNamed = 4;

// Returns the end of gRPC's message, which is the cause: "failed to connect to all addresses; …:
// Connection refused".
std::string Cause(const std::string& reason) {
  const size_t colon = reason.rfind(": ");
  return colon == reason.npos ? reason : reason.substr(colon + 2);
}

}  // namespace

Arrivals::Arrivals(int stages, Say say, std::function<SteadyTime()> now)
    : stages_(stages), say_(std::move(say)), now_(std::move(now)), next_(now_() + kFirst) {}

void Arrivals::Missing(int i, const std::string& name, const std::string& reason) {
  absl::MutexLock lock(&mutex_);
  missing_[i] = absl::StrCat(name, ": ", Cause(reason));
  if (!say_ || now_() < next_) return;
  next_ = now_() + kEvery;
  say_(Text());
}

void Arrivals::Arrived(int i) {
  absl::MutexLock lock(&mutex_);
  missing_.erase(i);
}

std::string Arrivals::Text() const {
  std::string text = absl::StrCat("waiting for ", missing_.size(), " of ", stages_, " stages: ");
  int named = 0;
  for (const auto& [i, what] : missing_) {
    if (named++ == kMostNamed) return absl::StrCat(text, "; …");
    absl::StrAppend(&text, named == 1 ? "" : "; ", what);
  }
  return text;
}

}  // namespace thinwire
