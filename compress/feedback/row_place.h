// Where stored rows of equal size lie: in memory, or in a file that may be larger than memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/device.h"

namespace thinwire {

// One thread at a time. A pointer that Read or ToWrite gave is valid until the next call.
class RowPlace {
 public:
  virtual ~RowPlace() = default;

  // Room for one row more. ResourceExhausted when there is none.
  virtual absl::Status Grow() = 0;
  // A row that was written.
  virtual absl::StatusOr<uint8_t*> Read(size_t row) = 0;
  // The memory that Write takes a row from.
  virtual uint8_t* ToWrite(size_t row) = 0;
  virtual absl::Status Write(size_t row) = 0;
};

// In slabs of `device`'s memory that grow from 64 KiB to 16 MiB, each row aligned to 64 bytes;
// never more than `most_rows`. What Read and ToWrite give is the row itself.
std::unique_ptr<RowPlace> NewRowMemory(Device* device, size_t row_bytes, size_t most_rows);

// In a file of `dir` that has no name any more once it is open, so that it goes with the process.
// Sparse; one row of it is held in memory. Errors name the file: ResourceExhausted when the disk is
// full or a limit is met (RLIMIT_FSIZE: where SIGXFSZ is ignored), otherwise Unavailable.
absl::StatusOr<std::unique_ptr<RowPlace>> NewRowFile(const std::string& dir, size_t row_bytes);

}  // namespace thinwire
