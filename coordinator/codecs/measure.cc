#include "coordinator/codecs/measure.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_replace.h"
#include "base/median.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "compress/codec.h"
#include "compress/codecs/new_codec.h"
#include "compress/codecs/plugin.h"
#include "compress/cpu/kernels.h"
#include "compress/support.h"
#include "coordinator/plan/break_even.h"
#include "tensor/cpu/device.h"
#include "wire/frame.h"

namespace thinwire {
namespace {

// Returns the header of a message in the middle of a training run.
MessageHeader HeaderOf(const CodecSpec& codec, const Tensor& x) {
  MessageHeader header;
  header.key = {PHASE_TRAIN, DIRECTION_ACTIVATION, /*cut=*/1,
                /*epoch=*/1, /*step=*/10'000,      /*microbatch=*/1};
  header.dtype = x.dtype();
  header.shape = x.shape();
  header.codec = codec;
  header.sample_digest = 1;
  return header;
}

// One codec on one tensor: its cost, and the seconds of each round.
struct Trial {
  std::unique_ptr<Codec> codec;
  std::shared_ptr<const Carry> carry;  // what the first message left
  absl::Status refused;
  uint64_t wire_bytes = 0;
  CodecKernels::Sums sums;
  std::vector<double> encode, decode;
};

// Returns the activation of the same message as a gradient, found by its name; null if there is
// none.
const Tensor* ActivationOf(const SampleTensor& sample, const std::vector<SampleTensor>& tensors) {
  constexpr char kGradient[] = "gradient", kActivation[] = "activation";
  if (sample.group != kGradient) return nullptr;
  const std::string name = absl::StrReplaceAll(sample.name, {{kGradient, kActivation}});
  for (const SampleTensor& other : tensors) {
    if (other.group == kActivation && other.name == name && other.x.shape() == sample.x.shape()) {
      return &other.x;
    }
  }
  return nullptr;
}

// All codecs on one tensor, with the memory that they share.
class Bench {
 public:
  Bench(const SampleTensor& sample, CodecKernels* kernels) : sample_(sample), kernels_(kernels) {}

  // `activation` is the received one, or null.
  absl::Status Prepare(const std::vector<CodecSpec>& codecs, const Tensor* activation) {
    if (activation != nullptr) RETURN_IF_ERROR(SetSupport(*activation));
    ASSIGN_OR_RETURN(decoded_, Tensor::Allocate(CpuDevice(), sample_.x.dtype(), sample_.x.shape()));
    if (decoded_.bytes() > 0) std::memset(decoded_.data(), 0, decoded_.bytes());
    for (const CodecSpec& spec : codecs) {
      Trial trial;
      ASSIGN_OR_RETURN(trial.codec, NewCodec(spec, kernels_));
      const size_t bound = trial.codec->MaxPayloadBytes(sample_.x.shape(), sample_.x.dtype());
      if (payload_.size() < bound) payload_.resize(bound);
      trials_.push_back(std::move(trial));
    }
    for (Trial& trial : trials_) trial.refused = FirstMessage(&trial);
    return absl::OkStatus();
  }

  absl::Status Round() {
    const SteadyTime start = SteadyTime::Now();
    std::memcpy(decoded_.data(), sample_.x.data(), sample_.x.bytes());
    copy_.push_back(SecondsSince(start));
    for (Trial& trial : trials_) {
      if (!trial.refused.ok()) continue;
      const SteadyTime begin = SteadyTime::Now();
      ASSIGN_OR_RETURN(const size_t bytes, Encode(trial));
      trial.encode.push_back(SecondsSince(begin));
      const SteadyTime middle = SteadyTime::Now();
      RETURN_IF_ERROR(Decode(trial, bytes));
      trial.decode.push_back(SecondsSince(middle));
    }
    return absl::OkStatus();
  }

  const SampleTensor& sample() const { return sample_; }
  const std::vector<Trial>& trials() const { return trials_; }
  double copy_seconds() const { return UpperMedian(copy_); }

 private:
  // Sets to 0 the entries that the received activation does not support: the receiver drops them
  // anyway.
  absl::Status SetSupport(const Tensor& activation) {
    ASSIGN_OR_RETURN(support_, SupportMap::Of(activation, kernels_));
    const SupportView support = support_->view();
    ASSIGN_OR_RETURN(const Tensor compact,
                     Tensor::Allocate(CpuDevice(), sample_.x.dtype(), {support.count}));
    ASSIGN_OR_RETURN(supported_,
                     Tensor::Allocate(CpuDevice(), sample_.x.dtype(), sample_.x.shape()));
    RETURN_IF_ERROR(ToStatus(kernels_->Compact(sample_.x.view(), support, compact.view())));
    return ToStatus(kernels_->Expand(compact.view(), support, supported_.view()));
  }

  MessageContext ContextOf(const Trial& trial) const {
    MessageContext context;
    context.carry = trial.carry.get();
    if (trial.codec->spec().needs_support()) context.support = &*support_;
    return context;
  }

  absl::StatusOr<size_t> Encode(const Trial& trial, std::shared_ptr<const Carry>* next = nullptr) {
    MessageContext context = ContextOf(trial);
    context.random_key = 1;
    context.next_carry = next;
    return trial.codec->Encode(sample_.x, context, absl::MakeSpan(payload_));
  }

  absl::Status Decode(const Trial& trial, size_t bytes) {
    return trial.codec->Decode(absl::MakeConstSpan(payload_.data(), bytes), ContextOf(trial),
                               &decoded_);
  }

  absl::Status FirstMessage(Trial* trial) {
    const bool needs_support = trial->codec->spec().needs_support();
    if (needs_support && !support_.has_value()) {
      return absl::InvalidArgumentError("needs a received activation");
    }
    RETURN_IF_ERROR(Encode(*trial, &trial->carry).status());
    ASSIGN_OR_RETURN(const size_t bytes, Encode(*trial));
    RETURN_IF_ERROR(Decode(*trial, bytes));
    trial->wire_bytes =
        WireBytes(HeaderOf(trial->codec->spec(), sample_.x), bytes, /*run=*/1, /*generation=*/1);
    const Tensor& wanted = needs_support ? supported_ : sample_.x;
    return ToStatus(kernels_->Compare(wanted.view(), decoded_.view(), &trial->sums));
  }

  const SampleTensor& sample_;
  CodecKernels* kernels_;
  std::vector<uint8_t> payload_;
  Tensor decoded_;
  std::optional<SupportMap> support_;
  Tensor supported_;  // the sample without the unsupported entries
  std::vector<Trial> trials_;
  std::vector<double> copy_;
};

// Returns the row of codec `index`, from the benches of one group.
CodecMeasurement Summarise(const std::vector<const Bench*>& group, size_t index) {
  CodecMeasurement row;
  row.codec = CodecText(group.front()->trials()[index].codec->spec());
  row.group = group.front()->sample().group;
  double raw = 0, elements = 0, wire = 0, copy = 0, encode = 0, decode = 0;
  CodecKernels::Sums sums;
  for (const Bench* bench : group) {
    const Trial& trial = bench->trials()[index];
    if (!trial.refused.ok()) {
      row.refused = std::string(trial.refused.message());
      return row;
    }
    raw += static_cast<double>(bench->sample().x.bytes());
    elements += static_cast<double>(bench->sample().x.elements());
    wire += static_cast<double>(trial.wire_bytes);
    copy += bench->copy_seconds();
    encode += UpperMedian(trial.encode);
    decode += UpperMedian(trial.decode);
    sums.difference += trial.sums.difference;
    sums.x += trial.sums.x;
    sums.y += trial.sums.y;
    sums.product += trial.sums.product;
  }
  row.wire_bits_per_element = 8 * wire / elements;
  row.relative_error = sums.x > 0 ? std::sqrt(sums.difference / sums.x) : 0;
  row.cosine = sums.x > 0 && sums.y > 0 ? sums.product / std::sqrt(sums.x * sums.y) : 0;
  row.encode_bytes_per_second = raw / encode;
  row.decode_bytes_per_second = raw / decode;
  row.encode_of_memcpy = copy / encode;
  row.decode_of_memcpy = copy / decode;
  row.break_even_bits_per_second = BreakEvenBitsPerSecond(raw, wire, encode + decode);
  return row;
}

}  // namespace

std::vector<std::string> StandardCodecs() {
  std::vector<std::string> codecs = {"none", "fp16", "bf16", "fp8(format=e4m3)",
                                     "fp8(format=e5m2)"};
  for (const char* range : {"min_max", "max_abs", "fixed_point"}) {
    for (const char* bits : {"8", "4", "2"}) {
      codecs.push_back(std::string("uniform(bits=") + bits + ", range=" + range + ")");
    }
  }
  for (const char* more : {"uniform(bits=4, rotation=hadamard, rotation_block=1024)",
                           "uniform(bits=4, lossless=zstd)",
                           "uniform(bits=4, lossless=entropy)",
                           "uniform(bits=8, lossless=entropy)",
                           "ecsq(step=0.5)",
                           "ecsq(step=1)",
                           "ecsq(step=1, rounding=dither)",
                           "ecsq(step=2, rounding=stochastic)",
                           "ecsq(rate=1)",
                           "ecsq(step=0.5, rotation=principal)",
                           "blockwise8",
                           "topk(ratio=0.3)",
                           "topk(ratio=0.1)",
                           "topk(ratio=0.05)",
                           "topk(ratio=0.01)",
                           "topk(ratio=0.1, values=fp16)",
                           "topk(ratio=0.1, values=uniform, bits=4)",
                           "topk(ratio=0.1, lossless=zstd)",
                           "topk(ratio=0.015625, scope=group, group=4096, values=means)",
                           "randomk(ratio=0.1)",
                           "threshold(threshold=2, relative_to=rms)",
                           "low_rank(rank=4)"}) {
    codecs.emplace_back(more);
  }
  return codecs;
}

absl::StatusOr<Measurements> MeasureCodecs(const std::vector<CodecSpec>& codecs,
                                           const std::vector<SampleTensor>& tensors,
                                           const MeasureOptions& options) {
  std::vector<std::unique_ptr<Bench>> benches;
  std::vector<std::vector<const Bench*>> groups;  // in the order of their first tensors
  for (const SampleTensor& tensor : tensors) {
    if (tensor.x.elements() == 0) continue;
    benches.push_back(std::make_unique<Bench>(tensor, CpuCodecKernels()));
    RETURN_IF_ERROR(benches.back()->Prepare(codecs, ActivationOf(tensor, tensors)));
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return group.front()->sample().group == tensor.group;
    });
    if (same == groups.end()) {
      groups.push_back({benches.back().get()});
    } else {
      same->push_back(benches.back().get());
    }
  }
  if (benches.empty()) return absl::InvalidArgumentError("no tensor with any element to measure");
  Measurements measured;
  const SteadyTime start = SteadyTime::Now();
  do {
    for (const auto& bench : benches) RETURN_IF_ERROR(bench->Round());
    ++measured.rounds;
    if (options.stopped && options.stopped()) return absl::CancelledError("interrupted");
  } while (measured.rounds < options.rounds && SecondsSince(start) < options.seconds);
  for (const auto& group : groups) {
    for (size_t i = 0; i < codecs.size(); ++i) measured.rows.push_back(Summarise(group, i));
  }
  return measured;
}

}  // namespace thinwire
