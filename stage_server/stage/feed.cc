#include "stage_server/stage/feed.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace thinwire {
namespace {

// Requests loaded ahead at most: the one about to be taken and the next.
constexpr size_t kAhead = 2;

FeedSpec LabelsOnly(FeedSpec spec) {
  spec.inputs = false;
  spec.labels = true;
  return spec;
}

}  // namespace

Feed::Feed(const FeedSpec& spec, const DataSplits* data, const Backend& backend)
    : spec_(spec),
      data_(data),
      backend_(backend),
      loader_(spec, data, backend.device->host()),
      counting_(LabelsOnly(spec), data, backend.device->host()) {
  if (!backend.device->is_host()) thread_.emplace([this] { LoadAhead(); });
}

Feed::~Feed() {
  if (!thread_) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_->join();
}

void Feed::Announce(const std::vector<FeedRequest>& requests) {
  if (!thread_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  Expect(requests);
}

void Feed::Expect(const std::vector<FeedRequest>& requests) {
  expected_.assign(requests.begin(), requests.end());
  loaded_.clear();
  ++announcement_;
  changed_.notify_all();
}

absl::StatusOr<LoadedSamples> Feed::Load(const FeedRequest& request) {
  ASSIGN_OR_RETURN(LoadedSamples samples, loader_.Load(request));
  if (backend_.device->is_host() || samples.inputs.empty()) return samples;
  const Tensor& inputs = samples.inputs;
  ASSIGN_OR_RETURN(Tensor copied,
                   Tensor::Allocate(backend_.device, inputs.dtype(), inputs.shape()));
  RETURN_IF_ERROR(
      ToStatus(backend_.device->CopyFromHost(copied.data(), inputs.data(), inputs.bytes())));
  samples.inputs = std::move(copied);
  return samples;
}

void Feed::LoadAhead() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] {
      return stopping_ || (loaded_.size() < kAhead && loaded_.size() < expected_.size());
    });
    if (stopping_) return;
    const FeedRequest request = expected_[loaded_.size()];
    // Kept for after the load, during which others may take samples or announce anew.
    const uint64_t announcement = announcement_;
    lock.unlock();
    absl::StatusOr<LoadedSamples> samples = Load(request);
    lock.lock();
    // Requests taken meanwhile came before this one, so the order holds. A new announcement makes
    // the samples useless.
    if (announcement == announcement_) loaded_.push_back(std::move(samples));
    changed_.notify_all();
  }
}

absl::StatusOr<LoadedSamples> Feed::TakeLoaded(const FeedRequest& request) {
  if (!thread_) return Load(request);
  std::unique_lock<std::mutex> lock(mutex_);
  if (expected_.empty() || !(expected_.front() == request)) Expect({request});
  changed_.wait(lock, [this] { return !loaded_.empty(); });
  const absl::Status status = loaded_.front().status();
  LoadedSamples samples;
  if (status.ok()) samples = *std::move(loaded_.front());
  loaded_.pop_front();
  expected_.pop_front();
  changed_.notify_all();
  if (!status.ok()) return status;
  return samples;
}

absl::StatusOr<Samples> Feed::Take(const FeedRequest& request) {
  ASSIGN_OR_RETURN(LoadedSamples loaded, TakeLoaded(request));
  Samples samples;
  samples.labels = std::move(loaded.labels);
  samples.digest = loaded.digest;
  if (spec_.inputs) {
    ASSIGN_OR_RETURN(samples.inputs, Converted(std::move(loaded.inputs)));
  }
  return samples;
}

absl::StatusOr<int64_t> Feed::CountLabels(const FeedRequest& request) {
  const Dataset& data = ReadsTrainingData(request.phase) ? *data_->train : *data_->test;
  if (!data.hides_tokens()) {
    return (request.range.last - request.range.first) * data.labels_per_sample();
  }
  if (counted_ == request) return labels_;
  ASSIGN_OR_RETURN(const LoadedSamples samples, counting_.Load(request));
  labels_ = std::count_if(samples.labels.begin(), samples.labels.end(),
                          [](int32_t label) { return label >= 0; });
  counted_ = request;
  return labels_;
}

absl::StatusOr<Tensor> Feed::Converted(Tensor inputs) const {
  if (inputs.dtype() == spec_.compute || inputs.dtype() == DType::kI32) return inputs;
  ASSIGN_OR_RETURN(const Tensor converted,
                   Tensor::Allocate(backend_.device, spec_.compute, inputs.shape()));
  RETURN_IF_ERROR(ToStatus(backend_.ops->Convert(inputs.view(), converted.view())));
  return converted;
}

}  // namespace thinwire
