#include "stage_server/stash/tensor_stash.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/random.h"
#include "base/status.h"
#include "base/stopwatch.h"
#include "compress/checks/distortion.h"
#include "compress/codecs/new_codec.h"
#include "compress/feedback/plan.h"

namespace thinwire {
namespace {

// Elements of the smallest tensor that is worth an encoding.
constexpr int64_t kLeastElements = 1024;
// Bytes of the least memory that is worth a move.
constexpr size_t kLeastMovedBytes = 4096;

bool IsFloat(DType dtype) { return dtype == DType::kF32 || dtype == DType::kBF16; }

// Returns the key of a tensor's random numbers. Of microbatches and slices of one batch each has
// another first sample or position.
uint64_t RandomKeyOf(uint64_t seed, const std::string& block, size_t index, const Pass& pass) {
  const uint64_t of_step =
      RandomKey(RandomKey(seed, absl::StrCat("stash/", block, "/", index)), pass.step);
  return RandomKey(of_step, static_cast<uint64_t>(pass.first_sample),
                   static_cast<uint64_t>(pass.first_position));
}

}  // namespace

// Memory that one or several of a block's tensors share.
struct TensorStash::Source {
  const void* data = nullptr;  // where it was
  DType dtype = DType::kF32;
  Shape shape;
  bool has_values = false, has_signs = false, is_exact = false;  // what is needed of it
  // One of these is set: the tensor as it is, bytes that came, encoded values, or signs.
  Tensor tensor;
  std::shared_ptr<const ReceivedPayload> payload;
  std::optional<CodedTensor> coded;
  std::optional<SupportMap> signs;

  // Returns the memory that may be moved, with the bytes of it that are used; null if there is
  // none.
  std::pair<std::shared_ptr<Buffer>, size_t> memory() const {
    if (coded) return {coded->memory(), coded->payload_bytes()};
    const bool moves = !tensor.empty() && IsFloat(dtype);
    return {moves ? tensor.buffer() : nullptr, moves ? tensor.bytes() : 0};
  }
  // Takes back the memory in other place, or gives it away for null.
  void set_memory(std::shared_ptr<Buffer> memory) {
    if (coded) {
      coded->set_memory(std::move(memory));
    } else {
      tensor = memory == nullptr ? Tensor() : Tensor(std::move(memory), dtype, shape);
    }
  }
  void Need(Needed needed) {
    has_values = has_values || needed == Needed::kValues;
    has_signs = has_signs || needed == Needed::kSigns;
    is_exact = is_exact || needed == Needed::kExact;
  }
  size_t bytes() const {
    if (payload) return payload->bytes();
    if (coded) return coded->bytes();
    if (signs) return 8 * ((signs->elements() + 63) / 64);
    return tensor.empty() ? 0 : tensor.bytes();
  }
};

// The tensors of one block, in the order of Put.
class TensorStash::Entry final : public StashedTensors {
 public:
  struct Item {
    size_t source = 0;
    Shape shape;
    Needed needed = Needed::kValues;
  };

  // Adds a tensor, once for all that share its memory.
  void Add(KeptTensor kept) {
    const Tensor& tensor = kept.tensor;
    const auto same = std::find_if(sources.begin(), sources.end(), [&](const Source& one) {
      return !tensor.empty() && one.data == tensor.data() && one.dtype == tensor.dtype() &&
             one.shape.elements() == tensor.elements();
    });
    const auto index = static_cast<size_t>(same - sources.begin());
    items.push_back({index, tensor.shape(), kept.needed});
    if (same == sources.end()) {
      Source& source = sources.emplace_back();
      source.data = tensor.data();
      source.dtype = tensor.dtype();
      source.shape = tensor.shape();
      source.tensor = std::move(kept.tensor);
    }
    sources[index].Need(kept.needed);
  }

  size_t bytes() const override {
    size_t bytes = 0;
    for (const Source& source : sources) bytes += source.bytes();
    return bytes;
  }

  std::vector<Source> sources;
  std::vector<Item> items;
  std::vector<size_t> moved;              // sources that `away` has
  std::unique_ptr<Swapper::Handle> away;  // null: nothing
};

absl::StatusOr<std::unique_ptr<TensorStash>> TensorStash::New(const StashOptions& options) {
  std::unique_ptr<TensorStash> stash(new TensorStash(options));
  if (!options.does) return stash;
  ASSIGN_OR_RETURN(stash->codec_, NewCodec(options.does->codec, options.kernels));
  return stash;
}

void TensorStash::Begin(const PlannedSlice& slice, Tensor input,
                        std::shared_ptr<const ReceivedPayload> payload) {
  slice_ = slice;
  input_ = std::move(input);
  payload_ = std::move(payload);
}

absl::Status TensorStash::PutAway(bool is_coded, uint64_t random_key, Source* source,
                                  BoundaryStatistics::Traffic* traffic) const {
  if (payload_ != nullptr && source->data == input_.data()) {
    source->payload = payload_;
    source->tensor = Tensor();
    return absl::OkStatus();
  }
  const bool stays = !is_coded || source->is_exact || !IsFloat(source->dtype) ||
                     source->shape.elements() < kLeastElements;
  if (stays) return absl::OkStatus();
  const Tensor x = std::exchange(source->tensor, Tensor());
  if (!source->has_values) {
    ASSIGN_OR_RETURN(source->signs, SupportMap::Of(x, options_.kernels));
    traffic->payload_bytes += source->bytes();
    return absl::OkStatus();
  }
  const bool keeps_signs = source->has_signs && !IsLossless(codec_->spec());
  absl::StatusOr<CodedTensor> coded = CodedTensor::Of(x, keeps_signs, random_key, coding());
  const bool passes =
      absl::IsOutOfRange(coded.status()) && options_.does->on_nonfinite == OnNonfinite::kPass;
  if (!coded.ok() && !passes) return coded.status();
  if (coded.ok() && coded->bytes() < x.bytes()) {
    source->coded = *std::move(coded);
  } else {
    source->tensor = x;
  }
  ++traffic->messages;
  traffic->elements += x.elements();
  traffic->raw_bytes += x.bytes();
  traffic->payload_bytes += source->bytes();
  return absl::OkStatus();
}

absl::Status TensorStash::Measure(const Tensor& x, const Source& source) const {
  if (!source.coded) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Tensor made, source.coded->Decode(coding()));
  MeasuredError error;
  ASSIGN_OR_RETURN(error.received, MeasureDistortion(x, made, options_.kernels));
  error.codec = CodecError{error.received.relative_error, 0};
  options_.counts->AddError(error);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<StashedTensors>> TensorStash::Put(const std::string& block,
                                                                 const Pass& pass,
                                                                 std::vector<KeptTensor> tensors) {
  // The layers are charged with the time of all that the device still computes.
  RETURN_IF_ERROR(ToStatus(options_.device->Finish()));
  const Stopwatch stopwatch;
  auto entry = std::make_shared<Entry>();
  for (KeptTensor& kept : tensors) entry->Add(std::move(kept));
  tensors.clear();
  const bool is_coded = codec_ != nullptr && options_.not_coded.count(block) == 0;
  const bool measures =
      is_coded && options_.error_every > 0 && pass.step % options_.error_every == 0;
  std::vector<Tensor> measured;
  BoundaryStatistics::Traffic traffic;
  for (size_t i = 0; i < entry->sources.size(); ++i) {
    Source& source = entry->sources[i];
    if (measures) measured.push_back(source.tensor);
    const uint64_t key = RandomKeyOf(options_.codec_seed, block, i, pass);
    RETURN_IF_ERROR(Annotated(PutAway(is_coded, key, &source, &traffic),
                              absl::StrCat("stash of block ", block)));
  }
  traffic.wire_bytes = traffic.payload_bytes;
  if (is_coded) {
    options_.counts->AddEncoding(traffic, stopwatch.Read());
    for (size_t i = 0; i < measured.size(); ++i) {
      RETURN_IF_ERROR(Measure(measured[i], entry->sources[i]));
    }
    AddSeconds("stash encode", stopwatch.Read());
  }
  measured.clear();
  if (options_.swapped.count(block) == 0) return entry;
  // Another thread reads next what this one's device has just written.
  if (is_coded) RETURN_IF_ERROR(ToStatus(options_.device->Finish()));
  RETURN_IF_ERROR(Annotated(MoveAway(pass, entry.get()), absl::StrCat("block ", block)));
  return entry;
}

absl::Status TensorStash::MoveAway(const Pass& pass, Entry* entry) {
  const Stopwatch stopwatch;
  Swapper::Memory memory;
  for (size_t i = 0; i < entry->sources.size(); ++i) {
    auto one = entry->sources[i].memory();
    const bool moves = one.first != nullptr && one.second >= kLeastMovedBytes &&
                       options_.swapper->Relieves(*one.first->device());
    if (!moves) continue;
    entry->moved.push_back(i);
    entry->sources[i].set_memory(nullptr);
    memory.push_back(std::move(one));
  }
  if (memory.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(entry->away,
                   options_.swapper->Put({options_.chunk, pass.first_sample, pass.first_position},
                                         std::move(memory)));
  AddSeconds("swap out", stopwatch.Read());
  return absl::OkStatus();
}

absl::Status TensorStash::MoveBack(Entry* entry) {
  if (entry->away == nullptr) return absl::OkStatus();
  const Stopwatch stopwatch;
  ASSIGN_OR_RETURN(Swapper::Memory memory, options_.swapper->Take(entry->away.get()));
  for (size_t i = 0; i < memory.size(); ++i) {
    entry->sources[entry->moved[i]].set_memory(std::move(memory[i].first));
  }
  AddSeconds("swap in", stopwatch.Read());
  return absl::OkStatus();
}

absl::StatusOr<Tensor> TensorStash::FromSigns(const Source& source) {
  const SupportView signs = source.signs->view();
  if (ones_.empty() || ones_.elements() < signs.count) {
    const std::vector<float> ones(std::max<int64_t>(1, signs.count), 1.0f);
    ASSIGN_OR_RETURN(
        ones_, Tensor::Allocate(options_.device, DType::kF32, {static_cast<int64_t>(ones.size())}));
    RETURN_IF_ERROR(
        ToStatus(options_.device->CopyFromHost(ones_.data(), ones.data(), ones_.bytes())));
  }
  ASSIGN_OR_RETURN(Tensor x, Tensor::Allocate(options_.device, source.dtype, source.shape));
  const Tensor ones(ones_.buffer(), ones_.dtype(), {signs.count});
  RETURN_IF_ERROR(ToStatus(options_.kernels->Expand(ones.view(), signs, x.view())));
  return x;
}

absl::StatusOr<Tensor> TensorStash::Make(const Source& source) {
  if (source.payload) return source.payload->Decode(options_.kernels);
  if (source.coded) return source.coded->Decode(coding());
  return source.signs ? FromSigns(source) : source.tensor;
}

absl::StatusOr<std::vector<KeptTensor>> TensorStash::Take(const std::string& block,
                                                          StashedTensors* stashed) {
  RETURN_IF_ERROR(ToStatus(options_.device->Finish()));
  auto& entry = *static_cast<Entry*>(stashed);
  RETURN_IF_ERROR(Annotated(MoveBack(&entry), absl::StrCat("block ", block)));
  const Stopwatch stopwatch;
  std::vector<Tensor> made;
  bool has_payload = false;
  for (Source& source : entry.sources) {
    has_payload = has_payload || source.payload != nullptr;
    ASSIGN_OR_RETURN(made.emplace_back(),
                     Annotated(Make(source), absl::StrCat("stash of block ", block)));
    source = Source();
  }
  RETURN_IF_ERROR(ToStatus(options_.device->Finish()));
  std::vector<KeptTensor> tensors;
  for (const Entry::Item& item : entry.items) {
    const Tensor& tensor = made[item.source];
    tensors.push_back(
        {tensor.empty() ? tensor : Tensor(tensor.buffer(), tensor.dtype(), item.shape),
         item.needed});
  }
  const Stopwatch::Reading took = stopwatch.Read();
  const bool is_coded = codec_ != nullptr && options_.not_coded.count(block) == 0;
  if (is_coded) options_.counts->AddDecoding(took);
  if (is_coded || has_payload) AddSeconds("stash decode", took);
  return tensors;
}

void TensorStash::AddSeconds(const char* name, const Stopwatch::Reading& took) {
  seconds_ += took.seconds;
  if (slice_.trace == nullptr) return;
  slice_.slice.name = name;
  slice_.Add(took);
}

double TensorStash::TakeSeconds() { return std::exchange(seconds_, 0); }

}  // namespace thinwire
