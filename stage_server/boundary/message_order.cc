#include "stage_server/boundary/message_order.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace thinwire {

void MessageOrder::Start(std::shared_ptr<const EpochRows> rows) {
  rows_ = std::move(rows);
  step_ = rows_->first_step();
  microbatch_ = 0;
}

absl::Status MessageOrder::Check(const MessageKey& key) const {
  if (rows_ == nullptr) return absl::OkStatus();
  const std::optional<uint32_t> epoch = is_complete() ? rows_->NextEpoch() : rows_->epoch();
  // What follows is not known, so nothing can be wanted.
  if (!epoch) return absl::OkStatus();
  if (key.epoch == *epoch && key.step == step_ && key.microbatch == microbatch_) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("want epoch ", *epoch, ", step ", step_, ", microbatch ", microbatch_));
}

void MessageOrder::Advance() {
  if (++microbatch_ < static_cast<uint32_t>(rows_->Microbatches(step_))) return;
  ++step_;
  microbatch_ = 0;
}

}  // namespace thinwire
