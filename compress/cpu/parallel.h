// Division of a tensor's elements among threads. Kernels give the same bits for any number of
// threads: what they write does not depend on the cuts, nor does the way in which parts' results
// are combined.
#pragma once

#include <algorithm>
#include <cstdint>

#include "compress/cpu/blocks.h"
#include "tensor/error.h"

namespace thinwire {

// Largest tensor for one thread: 1 MiB of fp32. Up to it, starting other threads costs more than it
// gains.
constexpr int64_t kMostOfOneThread = int64_t{1} << 18;

// Elements [0, total) divided into at most `threads` nearly equal parts, each of which begins at a
// multiple of `grain`. There is one part for kMostOfOneThread elements or fewer.
class Parts {
 public:
  static constexpr int kMost = 64;

  Parts(int64_t total, int threads, int64_t grain = kBlock) : total_(total), grain_(grain) {
    grains_ = (total + grain - 1) / grain;
    if (total <= kMostOfOneThread) return;
    count_ = static_cast<int>(std::clamp<int64_t>(threads, 1, std::min<int64_t>(kMost, grains_)));
  }
  int count() const { return count_; }
  int64_t begin(int part) const { return std::min(total_, grains_ * part / count_ * grain_); }
  int64_t end(int part) const { return begin(part + 1); }

 private:
  int64_t total_, grain_, grains_;
  int count_ = 1;
};

// Calls run(body, part) for each part in [0, count), all at the same time, and waits for all.
void RunParts(int count, void (*run)(const void* body, int part), const void* body);

// Calls body(part, begin, end) for each part, each on a thread of its own. Memory of the calling
// thread may be shared; thread_local memory that a body uses belongs to the body's thread.
template <typename Body>
void ForEachPart(const Parts& parts, const Body& body) {
  if (parts.count() == 1) return body(0, parts.begin(0), parts.end(0));
  const auto one = [&](int part) { body(part, parts.begin(part), parts.end(part)); };
  const auto run = [](const void* f, int part) { (*static_cast<const decltype(one)*>(f))(part); };
  RunParts(parts.count(), run, &one);
}

// Like ForEachPart, but with bodies that return an Error. Returns the error of the first part that
// has one.
template <typename Body>
Error TryEachPart(const Parts& parts, const Body& body) {
  if (parts.count() == 1) return body(0, parts.begin(0), parts.end(0));
  Error errors[Parts::kMost];
  ForEachPart(parts,
              [&](int part, int64_t begin, int64_t end) { errors[part] = body(part, begin, end); });
  Error* const end = errors + parts.count();
  Error* const first = std::find_if(errors, end, [](const Error& e) { return !e.ok(); });
  return first == end ? Error{} : *first;
}

// Returns the largest body(begin, end) of all parts.
template <typename Body>
uint32_t LargestOfParts(const Parts& parts, const Body& body) {
  uint32_t largest[Parts::kMost];
  ForEachPart(parts,
              [&](int part, int64_t begin, int64_t end) { largest[part] = body(begin, end); });
  return *std::max_element(largest, largest + parts.count());
}

// Returns the sum of body(begin, end) over all parts.
template <typename Body>
int64_t SumOfParts(const Parts& parts, const Body& body) {
  int64_t sums[Parts::kMost], sum = 0;
  ForEachPart(parts, [&](int part, int64_t begin, int64_t end) { sums[part] = body(begin, end); });
  for (int part = 0; part < parts.count(); ++part) sum += sums[part];
  return sum;
}

// Calls visit(first element, number of elements) for the blocks of [begin, end).
template <typename Visit>
void ForEachBlock(int64_t begin, int64_t end, const Visit& visit) {
  for (int64_t i = begin; i < end; i += kBlock) {
    visit(i, static_cast<size_t>(std::min<int64_t>(kBlock, end - i)));
  }
}

// Do so with memory of the block's floats as a third argument: ReadBlocks has the block's elements
// there, WriteBlocks takes them from there.
template <typename Visit>
void ReadBlocks(const TensorView& x, int64_t begin, int64_t end, const Visit& visit) {
  alignas(64) float scratch[kBlock];
  ForEachBlock(begin, end, [&](int64_t i, size_t n) { visit(i, n, ReadFloats(x, i, n, scratch)); });
}
template <typename Visit>
void WriteBlocks(const TensorView& x, int64_t begin, int64_t end, const Visit& visit) {
  alignas(64) float scratch[kBlock];
  ForEachBlock(begin, end, [&](int64_t i, size_t n) {
    visit(i, n, FloatsToWrite(x, i, scratch));
    FinishFloats(x, i, n, scratch);
  });
}

}  // namespace thinwire
