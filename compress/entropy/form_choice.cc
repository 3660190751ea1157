#include "compress/entropy/form_choice.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "compress/entropy/rans.h"

namespace thinwire {
namespace {

// Bytes by which two expectations may differ from the two frames.
constexpr double kUncertain = 64;
// Length of a frame of which kUncertain is one percent.
constexpr double kShort = 100 * kUncertain;

constexpr double kPairsShare = 0.991;

}  // namespace

// A state starts at 2^15, that is, with 15 bits that carry nothing, and ends with 23 bits on
// average in its 32. So each of the kStates states is worth 8 bits of the string. Until that is
// used up, no word leaves a state, and a frame has only states.
double ExpectedRansBytes(double bits, size_t strings) {
  constexpr double kWorth = kStates;  // bytes
  const auto states = static_cast<double>(strings);
  return kStatesBytes * states + std::max(0.0, bits / 8 - kWorth * states);
}

double FormCost(EntropyForm form, double frame_bytes) {
  return form == EntropyForm::kPairs ? kPairsShare * frame_bytes : frame_bytes;
}

std::vector<EntropyForm> FormsToMake(const FormBytes& expected, size_t num_bytes) {
  std::vector<std::pair<double, EntropyForm>> costs;
  for (const auto& [form, bytes] : {std::pair(EntropyForm::kPairs, expected.pairs),
                                    std::pair(EntropyForm::kNeighbours, expected.neighbours),
                                    std::pair(EntropyForm::kPlain, expected.plain)}) {
    if (bytes < static_cast<double>(num_bytes) + kUncertain) {
      costs.emplace_back(FormCost(form, bytes), form);
    }
  }
  std::sort(costs.begin(), costs.end());
  std::vector<EntropyForm> forms;
  for (const auto& [cost, form] : costs) {
    const double least = costs.front().first;
    const bool may_be_best = least < kShort && cost <= least + kUncertain;
    if (forms.empty() || may_be_best) forms.push_back(form);
  }
  return forms;
}

}  // namespace thinwire
