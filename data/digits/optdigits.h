// The records of UCI optdigits, embedded in the program at build time.
#pragma once

#include <cstdint>

namespace thinwire {

// Size of a record: 64 pixels with values 0 to 16, row by row, then the class, 0 to 9.
constexpr int64_t kOptdigitsRecordBytes = 65;

struct OptdigitsRecords {
  const uint8_t* bytes;  // static
  int64_t count;
};
OptdigitsRecords OptdigitsTrain();
OptdigitsRecords OptdigitsTest();

}  // namespace thinwire
