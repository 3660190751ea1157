// Lines (range_line.h) of a tensor's elements, for kernels that go over it tile by tile (tile.cuh).
// For contiguous scopes they are read from the header, once by each thread if a tile lies in one
// scope. For strided scopes they are read from a table.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "compress/cuda/ranges.cuh"
#include "compress/cuda/scope_cursor.cuh"
#include "compress/layout.h"

namespace thinwire {

// Functors that turn a scope's range into the line that a kernel needs.
struct ToEncodeLine {
  int32_t divisor;
  __device__ EncodeLine operator()(const DecodeLine& range) const {
    return EncodeLineOf(range, divisor);
  }
};
struct ToDecodeLine {
  __device__ DecodeLine operator()(const DecodeLine& range) const { return range; }
};

// Cursor over elements that have one line.
template <typename Line>
struct SameLine {
  __device__ void Advance() {}
  // Calls apply(k, line) for each element of a vector; elements from `left` on, which are not in
  // the tensor, may be left out.
  template <typename Apply>
  __device__ void ForEach(int /*left*/, const Apply& apply) const {
#pragma unroll
    for (int k = 0; k < 4; ++k) apply(k, line);
  }
  Line line;
};

// Lines for tiles that lie in one scope each: the tensor is a single scope, or scopes are
// contiguous and consist of whole tiles.
template <typename ToLine>
struct OneLine {
  RangeHeader header;
  int64_t count, elements;  // number of scopes, elements per scope
  ToLine to_line;

  __device__ int64_t ScopeOf(int64_t element) const {
    return count == 1 ? 0 : min(element / elements, count - 1);
  }

  struct Cursor : SameLine<decltype(ToLine()(DecodeLine()))> {
    __device__ Cursor(const OneLine& one, int64_t element)
        : SameLine<decltype(ToLine()(DecodeLine()))>{
              one.to_line(one.header.Read(one.ScopeOf(element)))} {}
  };
};

// Lines for contiguous scopes of any length.
template <typename ToLine>
struct ContiguousLines {
  RangeHeader header;
  ContiguousScopes scopes;
  ToLine to_line;

  class Cursor {
   public:
    __device__ Cursor(const ContiguousLines& lines, int64_t element)
        : lines_(lines), cursor_(lines.scopes, element) {}
    __device__ void Advance() { cursor_.Advance(); }
    template <typename Apply>
    __device__ void ForEach(int left, const Apply& apply) {
      const auto line_of = [this](int64_t scope) {
        if (scope != scope_) {
          scope_ = scope;
          line_ = lines_.to_line(lines_.header.Read(scope));
        }
        return line_;
      };
      cursor_.ForEach(left, line_of, apply);
    }

   private:
    const ContiguousLines& lines_;
    ScopeCursor cursor_;
    int64_t scope_ = -1;  // scope of line_, kept since most of a thread's vectors share one
    decltype(ToLine()(DecodeLine())) line_;
  };
};

// Table of lines: each of a line's numbers has an array of `period` floats. The period is a
// multiple of the number of scopes and of four, so that vectors of the tensor match vectors of the
// table.
struct LineTable {
  float* floats;
  int64_t period;
  int64_t step;  // from a thread's vector to its next: kTileStride % period

  __device__ void Load(int number, int64_t phase, float (&v)[4]) const {
    LoadVector(floats + number * period + phase, 4, v);
  }
};

__device__ inline void WriteLine(const EncodeLine& line, int64_t i, const LineTable& table) {
  table.floats[i] = line.offset;
  table.floats[table.period + i] = line.lift;
  table.floats[2 * table.period + i] = line.inverse;
}
__device__ inline void WriteLine(const DecodeLine& line, int64_t i, const LineTable& table) {
  table.floats[i] = line.offset;
  table.floats[table.period + i] = line.range;
}

template <typename Apply>
__device__ inline void ForEachLine(const LineTable& table, int64_t phase, ToEncodeLine,
                                   const Apply& apply) {
  float offset[4], lift[4], inverse[4];
  table.Load(0, phase, offset), table.Load(1, phase, lift), table.Load(2, phase, inverse);
#pragma unroll
  for (int k = 0; k < 4; ++k) apply(k, EncodeLine{offset[k], lift[k], inverse[k]});
}
template <typename Apply>
__device__ inline void ForEachLine(const LineTable& table, int64_t phase, ToDecodeLine,
                                   const Apply& apply) {
  float offset[4], range[4];
  table.Load(0, phase, offset), table.Load(1, phase, range);
#pragma unroll
  for (int k = 0; k < 4; ++k) apply(k, DecodeLine{offset[k], range[k]});
}

template <typename ToLine>
struct StridedLines {
  LineTable table;
  ToLine to_line;

  class Cursor {
   public:
    __device__ Cursor(const StridedLines& lines, int64_t element)
        : lines_(lines), phase_(element % lines.table.period) {}
    __device__ void Advance() {
      phase_ += lines_.table.step;
      if (phase_ >= lines_.table.period) phase_ -= lines_.table.period;
    }
    template <typename Apply>
    __device__ void ForEach(int, const Apply& apply) const {
      ForEachLine(lines_.table, phase_, lines_.to_line, apply);
    }

   private:
    const StridedLines& lines_;
    int64_t phase_;
  };
};

}  // namespace thinwire
