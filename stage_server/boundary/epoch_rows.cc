#include "stage_server/boundary/epoch_rows.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace thinwire {

EpochRows::EpochRows(const EpochSpec& spec, bool needs_ids)
    : spec_(spec), batches_(NumBatches(spec.samples, spec.shuffle.batch_size)) {
  if (!needs_ids) return;
  order_ = EpochOrder(spec.shuffle, spec.epoch, spec.samples);
}

uint64_t EpochRows::first_step() const {
  return spec_.first_step > 0 ? spec_.first_step : StepsBefore() + 1;
}

uint64_t EpochRows::last_step() const {
  return spec_.last_step > 0 ? spec_.last_step : StepsBefore() + batches_;
}

std::optional<uint32_t> EpochRows::EpochOf(uint64_t step) const {
  if (step > last_step() && !spec_.goes_on) return std::nullopt;
  return step > StepsBefore() + batches_ ? spec_.epoch + 1 : spec_.epoch;
}

uint64_t EpochRows::BatchIndex(uint64_t step) const { return step - 1 - StepsBefore(); }

int64_t EpochRows::BatchSize(int64_t index) const {
  const int64_t batch_size = spec_.shuffle.batch_size;
  return std::min(batch_size, spec_.samples - index * batch_size);
}

int EpochRows::Microbatches(int64_t index) const {
  return static_cast<int>(std::min<int64_t>(spec_.microbatches, BatchSize(index)));
}

SampleRange EpochRows::Carried(uint64_t step) const {
  const auto index = static_cast<int64_t>(BatchIndex(step));
  const int count = Microbatches(index < batches_ ? index : 0);
  return {std::min(spec_.first_carried, count), std::min(spec_.end_carried, count)};
}

absl::StatusOr<std::vector<uint64_t>> EpochRows::Of(StateKey key, uint64_t step,
                                                    uint32_t microbatch) const {
  if (BatchIndex(step) >= static_cast<uint64_t>(batches_)) {
    return absl::InvalidArgumentError(absl::StrCat("step ", step, ", epoch ", spec_.epoch,
                                                   " has steps ", StepsBefore() + 1, " to ",
                                                   StepsBefore() + batches_));
  }
  const auto index = static_cast<int64_t>(BatchIndex(step));
  const int count = Microbatches(index);
  if (microbatch >= static_cast<uint32_t>(count)) {
    return absl::InvalidArgumentError(
        absl::StrCat("microbatch ", microbatch, ", the batch has ", count));
  }
  const SampleRange range = MicrobatchRange(BatchSize(index), count, static_cast<int>(microbatch));
  const int64_t batch_size = spec_.shuffle.batch_size;
  std::vector<uint64_t> rows;
  for (int64_t slot = range.first; slot < range.last; ++slot) {
    switch (key) {
      case StateKey::kStream:
        rows.push_back(slot - range.first);
        break;
      case StateKey::kSlot:
        rows.push_back(slot);
        break;
      case StateKey::kSample:
        rows.push_back(order_[index * batch_size + slot]);
        break;
      case StateKey::kBatch:
        rows.push_back(order_.Batch(index) * batch_size + slot);
        break;
    }
  }
  return rows;
}

void MessageOrder::Start(std::shared_ptr<const EpochRows> rows) {
  rows_ = std::move(rows);
  GoTo(rows_->first_step());
}

void MessageOrder::GoTo(uint64_t step) {
  SampleRange carried = rows_->Carried(step);
  while (carried.first == carried.last && rows_->EpochOf(step) == rows_->epoch()) {
    carried = rows_->Carried(++step);
  }
  step_ = step;
  microbatch_ = static_cast<uint32_t>(carried.first);
}

absl::Status MessageOrder::Check(const MessageKey& key) const {
  if (rows_ == nullptr) return absl::OkStatus();
  const std::optional<uint32_t> epoch = rows_->EpochOf(step_);
  // The message that follows is not known, so none is wanted.
  if (!epoch) return absl::OkStatus();
  if (key.epoch == *epoch && key.step == step_ && key.microbatch == microbatch_) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("want epoch ", *epoch, ", step ", step_, ", microbatch ", microbatch_));
}

void MessageOrder::Advance() {
  if (++microbatch_ == static_cast<uint32_t>(rows_->Carried(step_).last)) GoTo(step_ + 1);
}

}  // namespace thinwire
