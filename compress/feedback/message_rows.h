// Rows of state of one message's samples: which exist, which are new, which find no room. This
// depends only on the order of messages, so both ends decide alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compress/feedback/spec.h"
#include "compress/feedback/state_store.h"

namespace thinwire {

// Lookup of a message's rows in a store.
class MessageRows {
 public:
  // Looks up the keys, which stay valid until Commit. ResourceExhausted, naming limit, bytes wanted
  // and rows, if they do not fit and `on_full` is kError; InvalidArgument if a key comes twice.
  absl::Status Plan(const StateStore& store, absl::Span<const uint64_t> keys, OnFull on_full);
  // Adds the new rows to the store; from now on all stored ones have a number.
  absl::Status Commit(StateStore* store);

  size_t size() const { return rows_.size(); }
  // Return whether the row of sample i was written before this message; whether it has a number: a
  // new row has none before Commit, and never gets one if it found no room.
  bool is_known(size_t i) const { return rows_[i].known; }
  bool is_there(size_t i) const { return rows_[i].number != StateStore::kAbsent; }
  size_t number(size_t i) const { return rows_[i].number; }
  // Returns the number of new rows that find room.
  size_t num_new() const { return num_new_; }
  std::string NewKeys() const;  // "7, 9, ... (12 in all)"

 private:
  struct Row {
    size_t number;
    bool known, stored;
  };
  absl::Status CheckKeysDiffer();

  absl::Span<const uint64_t> keys_;
  std::vector<Row> rows_;
  std::vector<uint64_t> sorted_;
  size_t num_new_ = 0;
};

// Returns e.g. "7, 9, 4, ... (12 in all)", with at most eight keys.
std::string ListOfKeys(absl::Span<const uint64_t> keys);

}  // namespace thinwire
