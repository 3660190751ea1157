#include "stage_server/boundary/message_order.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace thinwire {

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
  // What follows is not known, so nothing can be wanted.
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
