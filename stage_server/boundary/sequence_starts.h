// Where sequences and documents begin in a message. Codecs that send first positions as they are
// ask for it (first_position in docs/compression.md).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "stage_server/boundary/boundary.h"
#include "tensor/tensor.h"
#include "wire/message.h"

namespace thinwire {

struct SequenceStarts {
  std::vector<uint32_t> documents = {};  // as MessageHeader::document_starts
  int64_t first_position = 0;            // of a text: position of the message's first row
};

// Returns whether the samples of a message begin with position 0. Later parts of a text do not, nor
// do slices but the first.
bool BeginsSequences(const BoundarySpec& spec, const MessageKey& key, int64_t first_position);

// Returns the rows of a message of `shape` with which `documents` begin, ascending. They are those
// of whole samples, also where the message has a slice of them.
std::vector<uint32_t> DocumentRowsOf(const BoundarySpec& spec, const MessageKey& key,
                                     const Shape& shape, absl::Span<const uint32_t> documents);

}  // namespace thinwire
