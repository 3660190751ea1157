#include "compress/codecs/code_choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "compress/bytes.h"
#include "compress/cpu/blocks.h"
#include "compress/cpu/ecsq_header.h"
#include "compress/cpu/segments.h"
#include "compress/cpu/whole_steps.h"
#include "compress/entropy/context_choice.h"
#include "compress/entropy/stretches.h"
#include "compress/scratch.h"

namespace thinwire {
namespace {

constexpr int kPasses = 2;
const double kLambda = std::log(2.0) / 6;  // squared steps per bit

// Contexts of the codes and bit costs, as the entropy coder sees them.
class Contexts {
 public:
  explicit Contexts(const CodesPlace& place) : place_(place) {}

  // Returns the sum of each code's neighbours, in the codes' order, and sets costs() to what each
  // byte costs given its sum. Chooses the neighbours at the first call only.
  const uint8_t* Look(const uint8_t* codes) {
    static thread_local Scratch<uint8_t> rows_memory, sums_memory, memory;
    const size_t num_rows = NumRows(place_.count), size = num_rows * kStates;
    uint8_t* const rows = rows_memory.Get(size);
    uint8_t* const sums_in_rows = sums_memory.Get(size);
    if (!choice_) choice_ = ChooseNeighbours({codes, place_.count}, place_.distances);
    ToRows(codes, place_.count, choice_->layout, rows);
    SumsOfNeighbours(choice_->neighbours, choice_->layout, rows, num_rows, sums_in_rows);
    SumCounter counter;
    counter.Add(absl::MakeConstSpan(rows, size), sums_in_rows);
    FillCosts(counter.Total());
    uint8_t* const sums = memory.Get(place_.count);
    FromRows(sums_in_rows, place_.count, choice_->layout, sums);
    return sums;
  }
  // Returns the costs of bytes, in squared steps: entry sum * kSymbols + byte.
  const float* costs() const { return costs_.data(); }

 private:
  void FillCosts(const SumCounts& counts) {
    const uint16_t boundaries = ChooseBoundaries(counts);
    for (int first = 0; first < kSums;) {
      int last = first + 1;
      while (last < kSums && (boundaries >> last & 1) == 0) ++last;
      Frequencies together = {};
      for (int sum = first; sum < last; ++sum) {
        for (int s = 0; s < kSymbols; ++s) together[s] += counts[sum][s];
      }
      FillCosts(together, first, last);
      first = last;
    }
  }
  // Fills in the costs for sums from `first` to before `last`. A byte that does not occur yet costs
  // as if it occurred half a time.
  void FillCosts(const Frequencies& counts, int first, int last) {
    double total = 0;
    for (const uint32_t count : counts) total += count;
    for (int s = 0; s < kSymbols; ++s) {
      const double count = std::max<double>(counts[s], 0.5);
      const auto cost = static_cast<float>(kLambda * std::log2(std::max(total, 1.0) / count));
      for (int sum = first; sum < last; ++sum) costs_[sum * kSymbols + s] = std::max(cost, 0.0f);
    }
  }

  const CodesPlace& place_;
  std::optional<ContextChoice> choice_;
  std::array<float, kSums * kSymbols> costs_;
};

}  // namespace

void ChooseCodes(const CodecSpec& spec, const TensorView& x, const CodesPlace& codes,
                 absl::Span<uint8_t> payload) {
  const Scopes scopes = ScopesOf(x, spec.scope, spec.group);
  uint8_t* const bytes = payload.data() + codes.begin;
  uint8_t* const means_bytes = bytes - kMeans;
  Contexts contexts(codes);
  for (int pass = 0; pass < kPasses; ++pass) {
    float means[kMeans] = {};
    for (int m = 0; m < kMeans && spec.has_means(); ++m) {
      means[m] = LoadAs<int8_t>(means_bytes + m) * kMeanUnit;
    }
    const uint8_t* const sums = contexts.Look(bytes);
    CellSums cells;
    alignas(64) float scratch[kBlock];
    for (int64_t i = 0; i < scopes.total; i += kBlock) {
      const auto n = static_cast<size_t>(std::min<int64_t>(kBlock, scopes.total - i));
      const float* const values = ReadFloats(x, i, n, scratch);
      ForEachSegment(i, n, scopes.elements, [&](size_t at, size_t m, int64_t scope, int64_t) {
        const float step = FromBFloat(LoadAs<uint16_t>(payload.data() + 2 * scope));
        if (step == 0) return;
        CheapestSteps(values + at, m, step, means, sums + i + at, contexts.costs(), bytes + i + at,
                      &cells);
      });
    }
    for (int m = 0; m < kMeans && spec.has_means(); ++m) {
      StoreAs(MeanOf(cells.fractions[m], cells.count[m]), means_bytes + m);
    }
  }
}

}  // namespace thinwire
