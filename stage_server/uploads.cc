#include "stage_server/uploads.h"

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

// Calls at a time. Each may have a message in memory before its lease is known.
constexpr size_t kMostUploads = 4;

}  // namespace

Uploads::Upload::~Upload() {
  const absl::MutexLock lock(&uploads_.mutex_);
  uploads_.under_way_.erase(this);
}

void Uploads::Upload::HasOpened() {
  const absl::MutexLock lock(&uploads_.mutex_);
  cancel_ = nullptr;
}

absl::StatusOr<std::unique_ptr<Uploads::Upload>> Uploads::Begin(std::function<void()> cancel,
                                                                SteadyTime now) {
  const absl::MutexLock lock(&mutex_);
  if (stopped_ || under_way_.size() >= kMostUploads) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kMostUploads, " calls that send files are under way, want fewer"));
  }
  std::unique_ptr<Upload> upload(new Upload(this, std::move(cancel), now + patience_));
  under_way_.insert(upload.get());
  return upload;
}

void Uploads::CancelLate(SteadyTime now) {
  const absl::MutexLock lock(&mutex_);
  for (const Upload* upload : under_way_) {
    if (upload->cancel_ && (stopped_ || now > upload->deadline_)) upload->cancel_();
  }
}

void Uploads::Stop() {
  {
    const absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  CancelLate(SteadyTime::Now());
}

}  // namespace thinwire
