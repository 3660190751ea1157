#include "stage_server/boundary/message_order.h"

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
  // What follows a single step, nobody has said.
  if (is_complete() && !rows_->is_whole_epoch()) return absl::OkStatus();
  const uint32_t epoch = rows_->epoch() + (is_complete() ? 1 : 0);
  if (key.epoch == epoch && key.step == step_ && key.microbatch == microbatch_) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("want epoch ", epoch, ", step ", step_, ", microbatch ", microbatch_));
}

void MessageOrder::Advance() {
  if (++microbatch_ < static_cast<uint32_t>(rows_->Microbatches(step_))) return;
  ++step_;
  microbatch_ = 0;
}

}  // namespace thinwire
