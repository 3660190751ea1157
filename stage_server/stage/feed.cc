#include "stage_server/stage/feed.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/memory_errors.h"
#include "base/status.h"
#include "wire/frame.h"
#include "wire/message_kind.h"

namespace thinwire {
namespace {

// Requests loaded ahead at most: the one about to be taken and the next.
constexpr size_t kAhead = 2;

// A frame has room for so many bytes of numbers, beside the rest of its header.
constexpr size_t kRoomForStarts = kMaxFrameOverhead - (4 << 10);

FeedSpec LabelsOnly(FeedSpec spec) {
  spec.inputs = false;
  spec.labels = true;
  return spec;
}

// Returns the bytes of a number in a message of Protocol Buffers: one for each seven bits.
size_t VarintBytes(uint32_t number) {
  size_t bytes = 1;
  for (; number >= 128; number >>= 7) ++bytes;
  return bytes;
}

// Returns the range of a sample's tokens or labels that the request wants.
SampleRange WantedOf(const std::vector<int32_t>& sample, const FeedRequest& request) {
  return request.positions.value_or(SampleRange{0, static_cast<int64_t>(sample.size())});
}

}  // namespace

// Loads and augments samples into host memory. Not thread-safe.
class SampleLoader {
 public:
  // Makes a loader; `data` and `host`, which allocates inputs, outlive it.
  SampleLoader(const FeedSpec& spec, const DataSplits* data, Device* host)
      : spec_(spec), data_(data), host_(host) {}

  // Returns the samples. Images are fp32 [samples, ...], tokens int32 [samples, positions].
  absl::StatusOr<Samples> Load(const FeedRequest& request) {
    const bool from_train = ReadsTrainingData(request.phase);
    const Dataset& data = from_train ? *data_->train : *data_->test;
    FindIds(request, data);
    Samples samples;
    samples.digest = SampleDigest(ids_);
    if (spec_.labels) samples.labels = Labels(request, data);
    if (spec_.inputs) {
      ASSIGN_OR_RETURN(samples.inputs,
                       data.is_text() ? Tokens(request, data) : Images(request, data));
      ASSIGN_OR_RETURN(samples.document_starts, DocumentStarts(request, data));
    }
    RETURN_IF_ERROR(data.status());
    return samples;
  }

 private:
  void FindIds(const FeedRequest& request, const Dataset& data) {
    const SampleRange& range = request.range;
    ids_.resize(range.last - range.first);
    if (!IsTrainingPass(request.phase)) {
      std::iota(ids_.begin(), ids_.end(), range.first);
      return;
    }
    if (epoch_ != request.epoch) {
      order_ = EpochOrder(spec_.shuffle, request.epoch, data.size());
      epoch_ = request.epoch;
    }
    for (size_t i = 0; i < ids_.size(); ++i)
      ids_[i] = order_[range.first + static_cast<int64_t>(i)];
  }

  Dataset::Augmentation AugmentationFor(const FeedRequest& request, const Dataset& data,
                                        int64_t id) const {
    if (!IsTrainingPass(request.phase)) return {};
    return AugmentationOf(data, spec_.augment, spec_.shuffle.seed, request.epoch, id);
  }

  std::vector<int32_t> Labels(const FeedRequest& request, const Dataset& data) const {
    std::vector<int32_t> labels, sample(data.labels_per_sample());
    const SampleRange kept = WantedOf(sample, request);
    labels.reserve(ids_.size() * (kept.last - kept.first));
    for (const int64_t id : ids_) {
      data.Labels(id, AugmentationFor(request, data, id), absl::MakeSpan(sample));
      labels.insert(labels.end(), sample.begin() + kept.first, sample.begin() + kept.last);
    }
    return labels;
  }

  absl::StatusOr<Tensor> Images(const FeedRequest& request, const Dataset& data) const {
    const Shape shape = data.sample_shape().WithBatch(static_cast<int64_t>(ids_.size()));
    const int64_t each = data.sample_shape().elements();
    ASSIGN_OR_RETURN(Tensor images, Tensor::Allocate(host_, DType::kF32, shape));
    for (size_t i = 0; i < ids_.size(); ++i) {
      data.Load(ids_[i], AugmentationFor(request, data, ids_[i]),
                images.floats().subspan(i * each, each));
    }
    return images;
  }

  absl::StatusOr<Tensor> Tokens(const FeedRequest& request, const Dataset& data) const {
    std::vector<int32_t> sample(data.sample_shape().elements());
    const SampleRange kept = WantedOf(sample, request);
    const Shape shape = {static_cast<int64_t>(ids_.size()), kept.last - kept.first};
    ASSIGN_OR_RETURN(Tensor tokens, Tensor::Allocate(host_, DType::kI32, shape));
    auto* to = static_cast<int32_t*>(tokens.data());
    for (const int64_t id : ids_) {
      data.LoadTokens(id, AugmentationFor(request, data, id), absl::MakeSpan(sample));
      to = std::copy(sample.begin() + kept.first, sample.begin() + kept.last, to);
    }
    return tokens;
  }

  // Returns them as messages have them, of whole samples. InvalidArgument if a frame has no room.
  absl::StatusOr<std::vector<uint32_t>> DocumentStarts(const FeedRequest& request,
                                                       const Dataset& data) const {
    std::vector<uint32_t> starts;
    const int64_t positions = data.sample_shape().elements();
    for (size_t i = 0; i < ids_.size(); ++i) {
      for (const int64_t start : data.DocumentStarts(ids_[i])) {
        starts.push_back(static_cast<uint32_t>(static_cast<int64_t>(i) * positions + start));
      }
    }
    size_t bytes = 0;
    for (const uint32_t start : starts) bytes += VarintBytes(start);
    if (bytes > kRoomForStarts) {
      return absl::InvalidArgumentError(absl::StrCat(
          "where ", starts.size(), " documents begin in the samples of a message takes ", bytes,
          " bytes, want at most ", kRoomForStarts, ": ",
          IsTrainingPass(request.phase) ? "more pipeline.microbatches"
                                        : "a smaller data.batch_size",
          ", or a smaller data.context"));
    }
    return starts;
  }

  const FeedSpec spec_;
  const DataSplits* const data_;
  Device* const host_;
  std::optional<uint32_t> epoch_;  // epoch whose order is in `order_`
  EpochOrder order_;
  std::vector<int64_t> ids_;  // of the current request
};

Feed::Feed(const FeedSpec& spec, const DataSplits* data, const Backend& backend)
    : spec_(spec),
      data_(data),
      backend_(backend),
      loader_(std::make_unique<SampleLoader>(spec, data, backend.device->host())),
      counting_(std::make_unique<SampleLoader>(LabelsOnly(spec), data, backend.device->host())) {
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

absl::StatusOr<Samples> Feed::Load(const FeedRequest& request) {
  ASSIGN_OR_RETURN(Samples samples, loader_->Load(request));
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
    absl::StatusOr<Samples> samples = MemoryErrorsAsStatus([&] { return Load(request); });
    lock.lock();
    // Requests taken meanwhile came before this one, so the order holds. A new announcement makes
    // the samples useless.
    if (announcement == announcement_) loaded_.push_back(std::move(samples));
    changed_.notify_all();
  }
}

absl::StatusOr<Samples> Feed::AwaitLoaded(const FeedRequest& request) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (expected_.empty() || !(expected_.front() == request)) Expect({request});
  changed_.wait(lock, [this] { return !loaded_.empty(); });
  absl::StatusOr<Samples> samples = std::move(loaded_.front());
  loaded_.pop_front();
  expected_.pop_front();
  changed_.notify_all();
  return samples;
}

absl::StatusOr<Samples> Feed::Take(const FeedRequest& request) {
  ASSIGN_OR_RETURN(Samples samples, thread_ ? AwaitLoaded(request) : Load(request));
  const Tensor inputs = std::move(samples.inputs);
  const bool is_as_wanted = inputs.dtype() == spec_.compute || inputs.dtype() == DType::kI32;
  if (!spec_.inputs || is_as_wanted) {
    samples.inputs = inputs;
    return samples;
  }
  ASSIGN_OR_RETURN(samples.inputs,
                   Tensor::Allocate(backend_.device, spec_.compute, inputs.shape()));
  RETURN_IF_ERROR(ToStatus(backend_.ops->Convert(inputs.view(), samples.inputs.view())));
  return samples;
}

absl::StatusOr<int64_t> Feed::CountLabels(const FeedRequest& request) {
  const Dataset& data = ReadsTrainingData(request.phase) ? *data_->train : *data_->test;
  if (!data.may_lack_labels()) {
    return (request.range.last - request.range.first) * data.labels_per_sample();
  }
  if (counted_ == request) return labels_;
  ASSIGN_OR_RETURN(const Samples samples, counting_->Load(request));
  labels_ = std::count_if(samples.labels.begin(), samples.labels.end(),
                          [](int32_t label) { return label >= 0; });
  counted_ = request;
  return labels_;
}

}  // namespace thinwire
