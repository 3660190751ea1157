#include "compress/tracked_rows.h"

#include <cmath>

#include "base/status.h"
#include "compress/message_tensors.h"
#include "compress/state_digest.h"

namespace thinwire {

absl::Status AddToRows(const MessageRows& rows, const Tensor& d, CodecKernels* kernels,
                       StateStore* store, Tensor* used) {
  for (size_t i = 0; i < rows.size(); ++i) {
    TensorView before = store->zeros();
    if (rows.is_known(i)) {
      ASSIGN_OR_RETURN(before, store->Load(rows.number(i)));
    }
    const TensorView change = RowOf(d, i);
    // `used` first: `after` may be the memory of `before`. The second sum reads from the cache.
    if (used != nullptr) {
      RETURN_IF_ERROR(ToStatus(kernels->Combine(1, before, 1, change, RowOf(*used, i))));
    }
    if (!rows.is_stored(i)) continue;
    const TensorView after = store->ToWrite(rows.number(i));
    RETURN_IF_ERROR(ToStatus(kernels->Combine(1, before, 1, change, after)));
    RETURN_IF_ERROR(store->Save(rows.number(i)));
  }
  return absl::OkStatus();
}

absl::Status SetRows(const MessageRows& rows, const Tensor& x, CodecKernels* kernels,
                     StateStore* store) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows.is_stored(i)) continue;
    const TensorView row = RowOf(x, i), zeros = store->zeros();
    CodecKernels::Sums sums;
    RETURN_IF_ERROR(ToStatus(kernels->Compare(row, zeros, &sums)));
    const TensorView after = store->ToWrite(rows.number(i));
    RETURN_IF_ERROR(
        ToStatus(kernels->Combine(1, std::isfinite(sums.x) ? row : zeros, 1, zeros, after)));
    RETURN_IF_ERROR(store->Save(rows.number(i)));
  }
  return absl::OkStatus();
}

bool IsDigestDue(const FeedbackSpec& spec, uint64_t step) {
  return spec.kind == FeedbackKind::kEf21 && spec.digest_every > 0 && step % spec.digest_every == 0;
}

absl::StatusOr<uint64_t> DigestOfRows(const MessageRows& rows, StateStore* store) {
  StateDigest digest;
  for (size_t i = 0; i < rows.size(); ++i) {
    uint64_t of_row = 0;
    if (rows.is_stored(i)) {
      ASSIGN_OR_RETURN(of_row, store->RowDigest(rows.number(i)));
    }
    digest.Add(of_row);
  }
  return digest.value();
}

}  // namespace thinwire
