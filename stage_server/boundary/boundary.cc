#include "stage_server/boundary/boundary.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/codec.h"
#include "compress/codecs/division.h"
#include "compress/codecs/new_codec.h"
#include "wire/message_kind.h"

namespace thinwire {

int ReplicaOf(const BoundarySpec& spec, const MessageKey& key) {
  if (!IsTrainingPass(key.phase)) return 0;
  // A peer may claim any microbatch.
  return std::min(static_cast<int>(key.microbatch / static_cast<uint32_t>(spec.replica_messages)),
                  spec.replicas - 1);
}

absl::StatusOr<uint64_t> MaxPayloadBytes(const BoundarySpec& spec) {
  ASSIGN_OR_RETURN(auto codec, NewCodec(Largest(spec.codec, spec.level), spec.kernels));
  const Shape largest = spec.sample.WithBatch(spec.max_batch);
  uint64_t exact = static_cast<uint64_t>(largest.elements()) * SizeOf(spec.compute);
  if (spec.basis.rank() > 0) {
    exact = std::max<uint64_t>(exact, static_cast<uint64_t>(spec.basis.elements()) * sizeof(float));
  }
  uint64_t coded = FeedbackMaxPayloadBytes(spec.feedback, *codec, largest, spec.compute);
  if (spec.packs_documents) {
    const int64_t documents = spec.max_batch * (spec.sample[1] - 1);
    coded += MaxDocumentBytes(spec.codec, largest, documents);
  }
  return std::max(exact, coded);
}

// Both halves of a split message are in one payload, whose header the host reads and writes.
bool CodesOnDevice(const BoundarySpec& spec, const CodecSpec& codec) {
  return spec.feedback.kind != FeedbackKind::kSplit && CodesOnDevice(codec, *spec.kernels);
}

absl::Status CheckExactness(const BoundarySpec& spec, bool compressed, const MessageHeader& got) {
  const bool is_coded = compressed && !spec.codec.is_exact();
  const bool may_be_exact = !is_coded || got.first_visit || spec.on_nonfinite == OnNonfinite::kPass;
  if (got.codec.is_exact() ? may_be_exact : is_coded) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("codec ", got.codec.ToString(), ", want ",
                                                 (is_coded ? spec.codec : CodecSpec()).ToString()));
}

// The sum of squares in fp64 is finite exactly if all fp32 numbers in it are.
absl::StatusOr<bool> IsFinite(const Tensor& x, CodecKernels* kernels) {
  CodecKernels::Sums sums;
  RETURN_IF_ERROR(ToStatus(kernels->Compare(x.view(), x.view(), &sums)));
  return std::isfinite(sums.x);
}

absl::StatusOr<Payload> OnHost(absl::Span<const uint8_t> bytes, Device* device) {
  ASSIGN_OR_RETURN(auto copy, Buffer::Allocate(device->host(), bytes.size()));
  RETURN_IF_ERROR(ToStatus(device->CopyToHost(copy->data(), bytes.data(), bytes.size())));
  const auto* const data = static_cast<const uint8_t*>(copy->data());
  return Payload{std::move(copy), {data, bytes.size()}};
}

FeedbackOptions FeedbackOptionsOf(const BoundarySpec& spec) {
  return {spec.feedback, spec.sample, spec.compute, spec.device, spec.kernels};
}

bool IsTraced(const BoundarySpec& spec, const MessageKey& key) {
  return spec.trace && IsTrainingPass(key.phase) && spec.trace->Wants(key.step);
}

PlannedSlice MessageSlice(const BoundarySpec& spec, Slice::Thread thread, const MessageKey& key,
                          const char* name) {
  PlannedSlice planned;
  if (!IsTraced(spec, key)) return planned;
  planned.trace = spec.trace.get();
  planned.slice.name = name;
  planned.slice.thread = thread;
  planned.slice.step = key.step;
  planned.slice.microbatch = static_cast<int>(key.microbatch);
  return planned.At(spec.cut, spec.direction);
}

absl::StatusOr<const Codec*> CodecInForce::Get(const CodecSpec& spec) {
  if (codec_ == nullptr || codec_->spec() != spec) {
    ASSIGN_OR_RETURN(codec_, NewCodec(spec, kernels_));
  }
  return codec_.get();
}

}  // namespace thinwire
