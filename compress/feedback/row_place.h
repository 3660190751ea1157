// Storage of rows of equal size: in memory, or in a file that may be larger than memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/device.h"

namespace thinwire {

// Storage of rows. One thread at a time. A pointer from Read or ToWrite is valid until the next
// call.
class RowPlace {
 public:
  virtual ~RowPlace() = default;

  // Makes room for one more row. ResourceExhausted if there is none.
  virtual absl::Status Grow() = 0;
  // Returns a row that was written.
  virtual absl::StatusOr<uint8_t*> Read(size_t row) = 0;
  // Returns the memory from which Write takes a row.
  virtual uint8_t* ToWrite(size_t row) = 0;
  virtual absl::Status Write(size_t row) = 0;
};

// Stores rows in slabs of `device`'s memory that grow from 64 KiB to 16 MiB, each row aligned to 64
// bytes; never more than `most_rows`. Read and ToWrite return the stored row itself.
std::unique_ptr<RowPlace> NewRowMemory(Device* device, size_t row_bytes, size_t most_rows);

// Stores rows in a file of `dir` whose name is removed once it is open, so that it goes with the
// process. The file is sparse; one row of it is held in memory. Errors name the file:
// ResourceExhausted if the disk is full or a limit is met (RLIMIT_FSIZE: where SIGXFSZ is ignored),
// otherwise Unavailable.
absl::StatusOr<std::unique_ptr<RowPlace>> NewRowFile(const std::string& dir, size_t row_bytes);

}  // namespace thinwire
