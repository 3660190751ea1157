#include "compress/feedback/state_rows.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/feedback/message_tensors.h"
#include "compress/feedback/state_digest.h"

namespace thinwire {

// Squares of finite fp32 numbers have a finite sum in fp64; any other value makes it infinite or
// NaN.
absl::StatusOr<bool> IsFinite(const TensorView& x, CodecKernels* kernels) {
  CodecKernels::Sums sums;
  RETURN_IF_ERROR(ToStatus(kernels->Compare(x, x, &sums)));
  return std::isfinite(sums.x);
}

std::string ListOfKeys(absl::Span<const uint64_t> keys) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < std::min(keys.size(), kMost); ++i) {
    absl::StrAppend(&text, i > 0 ? ", " : "", keys[i]);
  }
  if (keys.size() > kMost) absl::StrAppend(&text, ", ... (", keys.size(), " in all)");
  return text;
}

absl::Status MessageRows::CheckKeysDiffer() {
  sorted_.assign(keys_.begin(), keys_.end());
  std::sort(sorted_.begin(), sorted_.end());
  const auto twice = std::adjacent_find(sorted_.begin(), sorted_.end());
  if (twice == sorted_.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("feedback: row ", *twice, " comes twice in a message, want it once"));
}

absl::Status MessageRows::Plan(const StateStore& store, absl::Span<const uint64_t> keys,
                               OnFull on_full) {
  keys_ = keys;
  num_new_ = 0;
  rows_.clear();
  RETURN_IF_ERROR(CheckKeysDiffer());
  const size_t room = store.capacity() - store.keys().size();
  size_t wanted = 0;
  for (const uint64_t key : keys) {
    const size_t number = store.Find(key);
    const bool known = number != StateStore::kAbsent;
    rows_.push_back({number, known, known || wanted < room});
    wanted += !known;
  }
  num_new_ = std::min(wanted, room);
  if (wanted <= room || on_full == OnFull::kPlain) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "feedback: limit_bytes is ", store.options().spec.limit_bytes, ", want ",
      (store.keys().size() + wanted) * store.row_bytes(), " bytes: ", store.keys().size(),
      " rows of ", store.row_bytes(), " bytes and now ", wanted, " more, ", NewKeys()));
}

absl::Status MessageRows::Commit(StateStore* store) {
  for (size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    if (row.known || !row.stored) continue;
    ASSIGN_OR_RETURN(row.number, store->Add(keys_[i]));
  }
  return absl::OkStatus();
}

std::string MessageRows::NewKeys() const {
  std::vector<uint64_t> keys;
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (!rows_[i].known) keys.push_back(keys_[i]);
  }
  return ListOfKeys(keys);
}

template <typename Visit>
absl::Status StateRows::ForEachGroup(Access access, const Visit& visit) {
  for (size_t first = 0; first < rows_.size();) {
    ASSIGN_OR_RETURN(const Group group, Open(access, first));
    RETURN_IF_ERROR(visit(group));
    if (access != Access::kRead) RETURN_IF_ERROR(Save(group));
    first += group.count;
  }
  return absl::OkStatus();
}

absl::StatusOr<StateRows::Group> StateRows::Open(Access access, size_t first) {
  const size_t count = std::min(store_->most_open(), rows_.size() - first);
  before_.assign(count, nullptr);
  after_.assign(count, nullptr);
  for (size_t k = 0; k < count; ++k) {
    const size_t i = first + k;
    if (access != Access::kWrite && rows_.is_known(i)) {
      ASSIGN_OR_RETURN(const TensorView row, store_->Load(rows_.number(i)));
      before_[k] = row.data;
    }
    if (access != Access::kRead && rows_.is_there(i)) {
      after_[k] = store_->ToWrite(rows_.number(i)).data;
    }
  }
  return Group{first, count, {nullptr, before_.data()}, {nullptr, after_.data()}};
}

absl::Status StateRows::Save(const Group& group) {
  for (size_t i = group.first; i < group.first + group.count; ++i) {
    if (rows_.is_there(i)) RETURN_IF_ERROR(store_->Save(rows_.number(i)));
  }
  return absl::OkStatus();
}

RowSums StateRows::SumsOf(const Group& group) const {
  RowSums sums;
  sums.count = static_cast<int64_t>(group.count);
  sums.elements = store_->options().sample.elements();
  return sums;
}

absl::Status StateRows::AddTo(const Tensor& x, float sign, const Tensor& sum) {
  return ForEachGroup(Access::kRead, [&](const Group& group) {
    RowSums sums = SumsOf(group);
    sums.x = RowsFrom(x, group.first);
    sums.b = sign;
    sums.y = group.before;
    sums.out = RowsFrom(sum, group.first);
    return ToStatus(kernels_->CombineRows(sums));
  });
}

absl::Status StateRows::Gather(const Tensor& to) {
  return ForEachGroup(Access::kRead, [&](const Group& group) {
    RowSums sums = SumsOf(group);
    sums.x = group.before;
    sums.out = RowsFrom(to, group.first);
    return ToStatus(kernels_->CombineRows(sums));
  });
}

absl::Status StateRows::Clear() {
  return ForEachGroup(Access::kWrite, [&](const Group& group) {
    RowSums sums = SumsOf(group);
    sums.out = group.after;
    return ToStatus(kernels_->CombineRows(sums));
  });
}

absl::Status StateRows::KeepErrors(float decay, const Tensor& message, const Tensor& sent) {
  RETURN_IF_ERROR(rows_.Commit(store_));
  return ForEachGroup(Access::kWrite, [&](const Group& group) {
    RowSums sums = SumsOf(group);
    sums.a = decay;
    sums.x = RowsFrom(message, group.first);
    sums.b = -decay;
    sums.y = RowsFrom(sent, group.first);
    sums.out = group.after;
    sums.zero_nonfinite = true;
    return ToStatus(kernels_->CombineRows(sums));
  });
}

absl::Status StateRows::Track(const Tensor& d, const Tensor* used) {
  RETURN_IF_ERROR(rows_.Commit(store_));
  return ForEachGroup(Access::kReadWrite, [&](const Group& group) {
    RowSums sums = SumsOf(group);
    sums.x = group.before;
    sums.y = RowsFrom(d, group.first);
    sums.out = group.after;
    sums.zero_nonfinite = true;
    if (used != nullptr) sums.also = RowsFrom(*used, group.first);
    return ToStatus(kernels_->CombineRows(sums));
  });
}

absl::Status StateRows::Set(const Tensor& x) {
  RETURN_IF_ERROR(rows_.Commit(store_));
  ASSIGN_OR_RETURN(const bool is_finite, IsFinite(x.view(), kernels_));
  return ForEachGroup(Access::kWrite, [&](const Group& group) -> absl::Status {
    RowSums sums = SumsOf(group);
    sums.x = RowsFrom(x, group.first);
    if (!is_finite) {
      ASSIGN_OR_RETURN(sums.x, FiniteRows(x, group));
    }
    sums.out = group.after;
    return ToStatus(kernels_->CombineRows(sums));
  });
}

absl::StatusOr<RowsView> StateRows::FiniteRows(const Tensor& x, const Group& group) {
  for (size_t k = 0; k < group.count; ++k) {
    const TensorView row = RowOf(x, group.first + k);
    ASSIGN_OR_RETURN(const bool is_finite, IsFinite(row, kernels_));
    before_[k] = is_finite ? row.data : nullptr;
  }
  return RowsView{nullptr, before_.data(), x.dtype()};
}

absl::StatusOr<uint64_t> StateRows::Digest() {
  StateDigest digest;
  for (size_t i = 0; i < rows_.size(); ++i) {
    uint64_t of_row = 0;
    if (rows_.is_there(i)) {
      ASSIGN_OR_RETURN(of_row, store_->RowDigest(rows_.number(i)));
    }
    digest.Add(of_row);
  }
  return digest.value();
}

}  // namespace thinwire
