#include "nn/segment/recorded_segment.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>
#include <vector>

#include "base/status.h"

namespace thinwire {
namespace {

// The result of a pass: memory that is lent to one microbatch at a time.
class Result {
 public:
  void Set(Tensor tensor) { tensor_ = std::move(tensor); }

  // Returns a tensor with the same memory but its own buffer, so that its users are counted apart
  // from other users of the memory.
  Tensor Lend() {
    if (tensor_.empty()) return Tensor();
    const auto lent =
        Buffer::Wrap(tensor_.device(), tensor_.data(), tensor_.bytes(), tensor_.buffer());
    lent_ = lent;
    return Tensor(lent, tensor_.dtype(), tensor_.shape());
  }
  bool is_free() const { return lent_.expired(); }

 private:
  Tensor tensor_;
  std::weak_ptr<Buffer> lent_;
};

// The memory and recordings of one microbatch in flight.
struct Slot {
  std::unique_ptr<Recorder> recorder;
  Tensor token;  // held by a microbatch's Saved; points to this slot
  Tensor x, dy;
  Result y, dx;
  Saved saved;       // filled by every replay of the forward pass
  Saved waiting;     // filled by every replay of the backward pass, where that is split
  int forward = -1;  // numbers of recordings; -1: not recorded yet
  int backward = -1;
  int weights = -1;

  // Returns whether nobody waits for a backward pass or reads what the last passes returned. Other
  // users can only drop references, so a slot that is seen to be free stays free.
  bool is_free() const { return token.buffer().use_count() == 1 && y.is_free() && dx.is_free(); }
};

// Passes that have run layer by layer, to their end.
struct Prepared {
  bool forward = false, backward = false, weights = false;
};

class RecordedSegment final : public Segment {
 public:
  RecordedSegment(std::unique_ptr<Segment> segment, const RecordingOptions& options)
      : segment_(std::move(segment)), options_(options) {}

  // A pass of a new size runs layer by layer once before it is recorded: in the first pass of a
  // shape, libraries make preparations that cannot be recorded.
  absl::StatusOr<Tensor> Forward(const Tensor& x, const Pass& pass, Saved* saved) override {
    Prepared& prepared = prepared_[x.shape()[0]];
    if (pass.mode == Mode::kTrain && recording_ && IsRecordedSize(x.shape()[0]) &&
        prepared.forward) {
      ASSIGN_OR_RETURN(Slot* const slot, FreeSlot(x));
      RETURN_IF_ERROR(ToStatus(options_.ops->Convert(x.view(), slot->x.view())));
      const bool is_recorded = slot->forward >= 0 || RecordForward(slot);
      if (!is_recorded) Drop(slot, x.shape()[0]);
      if (is_recorded) {
        RETURN_IF_ERROR(ToStatus(slot->recorder->Replay(slot->forward)));
        saved->Push(slot->token);
        return slot->y.Lend();
      }
    }
    ASSIGN_OR_RETURN(Tensor y, segment_->Forward(x, pass, saved));
    if (pass.mode == Mode::kTrain) {
      saved->Push(Tensor());
      prepared.forward = true;
    }
    return y;
  }

  absl::StatusOr<Tensor> Backward(const Tensor& dy, Saved* saved) override {
    const Tensor token = saved->Pop();
    Prepared& prepared = prepared_[dy.shape()[0]];
    if (token.empty()) {
      ASSIGN_OR_RETURN(Tensor dx, segment_->Backward(dy, saved));
      prepared.backward = true;
      return dx;
    }
    auto* const slot = static_cast<Slot*>(token.data());
    if (dy.data() != slot->dy.data()) {
      RETURN_IF_ERROR(ToStatus(options_.ops->Convert(dy.view(), slot->dy.view())));
    }
    if (slot->backward < 0 && recording_ && prepared.backward) RecordBackward(slot);
    if (slot->backward < 0) {
      *saved = slot->saved;
      ASSIGN_OR_RETURN(Tensor dx, segment_->Backward(slot->dy, saved));
      prepared.backward = true;
      if (saved->waits()) saved->Push(token);  // what waits is in the slot's memory
      return dx;
    }
    RETURN_IF_ERROR(ToStatus(slot->recorder->Replay(slot->backward)));
    if (slot->waiting.waits()) saved->Push(token);
    return slot->dx.Lend();
  }

  absl::Status BackwardWeights(Saved* saved) override {
    if (saved->empty()) return segment_->BackwardWeights(saved);
    const Tensor token = saved->Pop();
    auto* const slot = static_cast<Slot*>(token.data());
    if (saved->waits()) return segment_->BackwardWeights(saved);
    Prepared& prepared = prepared_[slot->x.shape()[0]];
    if (slot->weights < 0 && recording_ && prepared.weights) {
      Record(slot->recorder.get(), &slot->weights, [&] { return WeightsLayerByLayer(slot); });
    }
    if (slot->weights >= 0) return ToStatus(slot->recorder->Replay(slot->weights));
    prepared.weights = true;
    return WeightsLayerByLayer(slot);
  }

  absl::Span<Parameter> parameters() override { return segment_->parameters(); }

  // These are few launches in any case.
  absl::Status ParametersChanged() override { return segment_->ParametersChanged(); }
  absl::Status ParametersUpdated() override { return segment_->ParametersUpdated(); }

  absl::Status ClearGradients() override { return segment_->ClearGradients(); }

 private:
  bool IsRecordedSize(int64_t batch) const {
    return batch >= options_.least_batch && batch <= options_.most_batch;
  }

  // Returns a free slot. The same slots serve the same microbatches of every step unless somebody
  // still holds what they returned.
  absl::StatusOr<Slot*> FreeSlot(const Tensor& x) {
    auto& slots = slots_[x.shape()[0]];
    for (const auto& slot : slots) {
      if (slot->is_free()) return slot.get();
    }
    auto slot = std::make_unique<Slot>();
    Recorder* recorder = nullptr;
    RETURN_IF_ERROR(ToStatus(options_.device->NewRecorder(&recorder)));
    slot->recorder.reset(recorder);
    slot->token = Tensor(Buffer::Wrap(options_.device, slot.get(), 0, nullptr), x.dtype(), {0});
    ASSIGN_OR_RETURN(slot->x, Tensor::Allocate(options_.device, x.dtype(), x.shape()));
    slots.push_back(std::move(slot));
    return slots.back().get();
  }

  // Drops a slot that nobody uses.
  void Drop(Slot* slot, int64_t batch) {
    auto& slots = slots_[batch];
    slots.erase(std::find_if(slots.begin(), slots.end(),
                             [slot](const auto& each) { return each.get() == slot; }));
  }

  // Records the forward pass; returns whether that worked.
  bool RecordForward(Slot* slot) {
    Tensor y;
    Record(slot->recorder.get(), &slot->forward, [&]() -> absl::Status {
      slot->saved = Saved();
      ASSIGN_OR_RETURN(y, segment_->Forward(slot->x, Mode::kTrain, &slot->saved));
      slot->dy = y;
      if (options_.ends_model) return absl::OkStatus();
      ASSIGN_OR_RETURN(slot->dy, Tensor::Allocate(options_.device, y.dtype(), y.shape()));
      return absl::OkStatus();
    });
    slot->y.Set(std::move(y));
    return slot->forward >= 0;
  }

  void RecordBackward(Slot* slot) {
    Tensor dx;
    Record(slot->recorder.get(), &slot->backward, [&]() -> absl::Status {
      Saved of_forward = slot->saved;
      ASSIGN_OR_RETURN(dx, segment_->Backward(slot->dy, &of_forward));
      slot->waiting = std::move(of_forward);
      return absl::OkStatus();
    });
    slot->dx.Set(std::move(dx));
  }

  absl::Status WeightsLayerByLayer(Slot* slot) {
    Saved waiting = slot->waiting;
    return segment_->BackwardWeights(&waiting);
  }

  // Records what `submit` submits. If that fails, leaves *recording negative and records nothing
  // any more.
  template <typename Submit>
  void Record(Recorder* recorder, int* recording, const Submit& submit) {
    absl::Status status = ToStatus(recorder->Start());
    if (status.ok()) {
      status = submit();
      if (status.ok()) status = ToStatus(recorder->Stop(recording));
      if (!status.ok()) recorder->Abandon();
    }
    if (status.ok()) return;
    *recording = -1;
    recording_ = false;
    std::fprintf(stderr, "%s: passes run layer by layer, recording failed: %s\n",
                 options_.device->name(), std::string(status.message()).c_str());
  }

  const std::unique_ptr<Segment> segment_;
  const RecordingOptions options_;
  bool recording_ = true;                 // false once a recording has failed
  std::map<int64_t, Prepared> prepared_;  // by batch size
  std::map<int64_t, std::vector<std::unique_ptr<Slot>>> slots_;  // by batch size
};

}  // namespace

std::unique_ptr<Segment> RecordSegment(std::unique_ptr<Segment> segment,
                                       const RecordingOptions& options) {
  Recorder* made = nullptr;
  if (!options.device->NewRecorder(&made).ok()) return segment;
  delete made;  // each microbatch has its own
  return std::make_unique<RecordedSegment>(std::move(segment), options);
}

}  // namespace thinwire
