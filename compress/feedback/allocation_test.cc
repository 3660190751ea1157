// Tests of how much compensation allocates: counts every operator new of the process.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "compress/feedback/pair_testing.h"

namespace {
std::atomic<int64_t> num_allocations{0};
}  // namespace

// Not inlined, because GCC 12 would report new and free as a mismatch.
__attribute__((noinline)) void* operator new(size_t bytes) {
  ++num_allocations;
  void* memory = std::malloc(bytes > 0 ? bytes : 1);
  if (memory == nullptr) std::abort();
  return memory;
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, size_t /*bytes*/) noexcept {
  std::free(memory);
}

namespace thinwire {
namespace {

struct Counts {
  int64_t sender = 0, receiver = 0;
};

// Returns what the fourth message of four samples allocates.
Counts AllocationsOf(const FeedbackSpec& spec) {
  const Shape shape = {4, 6, 16};
  FeedbackPair pair(FeedbackOptionsOf(spec, shape.WithBatch(1)));
  const auto codec = CodecOf(TopKOf(0.1));
  const Tensor x = TensorOf(shape, RandomValues(shape.elements(), 1));
  const Rows rows = {3, 1, 4, 5};
  pair.payload.resize(FeedbackMaxPayloadBytes(spec, *codec, shape, DType::kF32));
  FeedbackSender::Outgoing outgoing;
  outgoing.x = &x;
  outgoing.rows = rows;
  FeedbackReceiver::Incoming incoming;
  incoming.shape = shape;
  incoming.rows = rows;
  Counts counts;
  for (int step = 0; step < 4; ++step) {
    outgoing.step = incoming.step = step;
    const int64_t before = num_allocations;
    pair.encoded = *pair.sender->Encode(*codec, outgoing, absl::MakeSpan(pair.payload));
    const int64_t between = num_allocations;
    incoming.payload = absl::MakeConstSpan(pair.payload).subspan(0, pair.encoded.bytes);
    incoming.exact = pair.encoded.exact;
    incoming.first_visit = pair.encoded.first_visit;
    incoming.state_digest = pair.encoded.state_digest;
    EXPECT_TRUE(pair.receiver->Decode(*codec, incoming).ok());
    counts = {between - before, num_allocations - between};
  }
  return counts;
}

TEST(AllocationTest, CompensationAllocatesNothingPerMessage) {
  const Counts plain = AllocationsOf({});
  EXPECT_GT(plain.receiver, 0);  // the tensor that is handed on
  for (const FeedbackKind kind : {FeedbackKind::kEf, FeedbackKind::kEf21, FeedbackKind::kSplit}) {
    for (const StateStorage store : {StateStorage::kF32, StateStorage::kQ8}) {
      FeedbackSpec spec = SpecOf(kind);
      spec.store = store;
      spec.digest_every = kind == FeedbackKind::kEf21 ? 1 : 0;
      const Counts counts = AllocationsOf(spec);
      EXPECT_EQ(counts.sender, 0) << spec.ToString();
      EXPECT_EQ(counts.receiver, plain.receiver) << spec.ToString();
    }
  }
}

}  // namespace
}  // namespace thinwire
