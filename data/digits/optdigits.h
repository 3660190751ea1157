// The records of UCI optdigits, made part of the program when it is built.
#pragma once

#include <cstdint>

namespace thinwire {

// 64 pixels of 0 to 16, row by row, then the class, 0 to 9.
constexpr int64_t kOptdigitsRecordBytes = 65;

struct OptdigitsRecords {
  const uint8_t* bytes;  // static
  int64_t count;
};
OptdigitsRecords OptdigitsTrain();
OptdigitsRecords OptdigitsTest();

}  // namespace thinwire
