#include "tests/wire/recorded_cut.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "data/sampler.h"
#include "wire/frame.h"
#include "wire/memory_link.h"

namespace thinwire {
namespace {

using nlohmann::json;

void AppendFrame(const OutgoingFrame& frame, std::string* to) {
  const size_t size = frame.prefix.size() + frame.payload.bytes.size();
  to->push_back(0);
  for (int shift = 24; shift >= 0; shift -= 8) to->push_back(static_cast<char>(size >> shift));
  *to += frame.prefix;
  to->append(frame.payload.bytes.begin(), frame.payload.bytes.end());
}

// Link that writes its frames down as they leave.
class RecordingLink final : public Link {
 public:
  RecordingLink(const LinkOptions& options, std::unique_ptr<Link> link, std::string* frames)
      : options_(options), link_(std::move(link)), frames_(frames) {}

  uint64_t Send(Message message) override {
    for (const OutgoingFrame& frame : ToFrames(message, options_.run, options_.generation)) {
      AppendFrame(frame, frames_);
    }
    return link_->Send(std::move(message));
  }
  absl::StatusOr<Message> Receive(SteadyTime deadline) override { return link_->Receive(deadline); }
  void Close(absl::Status reason) override { link_->Close(std::move(reason)); }
  absl::Status Flush(SteadyTime deadline) override { return link_->Flush(deadline); }
  uint64_t SocketBytesAcked() const override { return link_->SocketBytesAcked(); }

 private:
  const LinkOptions options_;
  const std::unique_ptr<Link> link_;
  std::string* const frames_;
};

json ToJson(const BoundaryStatistics::Traffic& traffic) {
  return {{"messages", traffic.messages},
          {"elements", traffic.elements},
          {"raw_bytes", traffic.raw_bytes},
          {"payload_bytes", traffic.payload_bytes},
          {"wire_bytes", traffic.wire_bytes}};
}

json ToJson(const CodecError& error) {
  return {{"relative_error", error.relative_error}, {"residual", error.relative_residual}};
}

// Returns what the sender has counted so far.
json ToJson(const BoundaryStatistics& statistics) {
  const MeasuredErrors& errors = statistics.errors;
  return {{"train", ToJson(statistics.train)},
          {"evaluate", ToJson(statistics.evaluate)},
          {"errors",
           {{"messages", errors.messages},
            {"relative_error", errors.relative_error},
            {"cosine", errors.cosine},
            {"nonzero_fraction", errors.nonzero_fraction},
            {"coded_messages", errors.coded_messages},
            {"codec", ToJson(errors.codec)},
            {"last_codec", ToJson(errors.last_codec)}}}};
}

json EntryOf(const Work& work, const MessageSamples& samples) {
  return {{"phase", work.phase},
          {"epoch", work.epoch},
          {"step", work.step},
          {"microbatch", work.microbatch},
          {"microbatches", work.microbatches},
          {"batch", samples.batch},
          {"ids", std::vector<int64_t>(samples.ids.begin(), samples.ids.end())},
          {"document_starts", samples.document_starts}};
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordedCut>> RecordedCut::New(const StageSpec& spec, int cut,
                                                              const Backend& backend) {
  std::unique_ptr<RecordedCut> made(new RecordedCut(spec));
  const CutEndSpec up{cut, DIRECTION_ACTIVATION, "the end behind the cut", Worker::kInline};
  const CutEndSpec down{cut, DIRECTION_GRADIENT, "the end before the cut", Worker::kInline};
  ASSIGN_OR_RETURN(const LinkOptions up_options, LinkOptionsOf(spec, up, backend));
  ASSIGN_OR_RETURN(const LinkOptions down_options, LinkOptionsOf(spec, down, backend));
  auto [up_link, down_link] = NewMemoryLinks(up_options, down_options);
  ASSIGN_OR_RETURN(made->upstream_,
                   CutEnd::New(spec, up, backend, &made->capture_,
                               std::make_unique<RecordingLink>(up_options, std::move(up_link),
                                                               &made->activations_.frames)));
  ASSIGN_OR_RETURN(made->downstream_,
                   CutEnd::New(spec, down, backend, &made->capture_,
                               std::make_unique<RecordingLink>(down_options, std::move(down_link),
                                                               &made->gradients_.frames)));
  made->activations_.messages = made->gradients_.messages = json::array();
  return made;
}

void RecordedCut::StartEpoch(const std::shared_ptr<const EpochRows>& rows) {
  for (CutEnd* end : {upstream_.get(), downstream_.get()}) {
    end->sender().StartEpoch(rows);
    end->receiver().StartEpoch(rows);
  }
}

absl::StatusOr<Tensor> RecordedCut::Cross(const Work& work, Direction direction,
                                          const MessageSamples& samples, Tensor x) {
  const bool is_activation = direction == DIRECTION_ACTIVATION;
  CutEnd& from = SendingEnd(direction);
  CutEnd& to = is_activation ? *downstream_ : *upstream_;
  RecordedDirection& record = is_activation ? activations_ : gradients_;
  const std::string name =
      absl::StrCat(boundary(direction).name, is_activation ? "/activation/" : "/gradient/",
                   record.messages.size());
  Keep(absl::StrCat(name, "/given"), x);
  const uint64_t digest = SampleDigest(samples.ids);
  RETURN_IF_ERROR(from.Send(work, digest, std::move(x), samples.document_starts));
  ASSIGN_OR_RETURN(BoundaryReceiver::Received received, to.Receive(work, digest));
  if (work.phase != PHASE_TRAIN) {
    RETURN_IF_ERROR(to.Acknowledge(work));
    RETURN_IF_ERROR(from.AwaitAcknowledgement(work, work.step));
  }
  Keep(absl::StrCat(name, "/used"), received.tensor);
  json entry = EntryOf(work, samples);
  entry["counted"] = ToJson(from.sender().statistics());
  record.messages.push_back(std::move(entry));
  return std::move(received.tensor);
}

const BoundarySpec& RecordedCut::boundary(Direction direction) {
  return SendingEnd(direction).sender().spec();
}

const RecordedDirection& RecordedCut::record(Direction direction) const {
  return direction == DIRECTION_ACTIVATION ? activations_ : gradients_;
}

void RecordedCut::Keep(const std::string& name, const Tensor& x) {
  bytes_.emplace_back(static_cast<const char*>(x.data()), x.bytes());
  StoredTensor stored;
  stored.name = name;
  stored.dtype = x.dtype() == DType::kF32 ? "F32" : "BF16";
  stored.shape.assign(x.shape().begin(), x.shape().end());
  stored.data = bytes_.back();
  tensors_.push_back(std::move(stored));
}

}  // namespace thinwire
