#include "compress/feedback/message_rows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace thinwire {

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
      "feedback: limit_bytes is ", store.options().limit_bytes, ", want ",
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

}  // namespace thinwire
