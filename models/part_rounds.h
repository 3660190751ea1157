// Messages that tensor-parallel parts exchange at a layer: who sends what to whom, as if each part
// had a machine of its own, and their numbers. A round is one exchange of all parts.
#pragma once

#include <cstdint>
#include <vector>

#include "models/model.h"

namespace thinwire {

enum class PartExchange {
  kSum,      // each part's partial sum goes to all others
  kScatter,  // slice s of each part's partial sum goes to part s
  kGather    // slice s goes from part s to all others
};

struct PartRound {
  PartExchange kind = PartExchange::kSum;
  Shape sample;           // what the round is about, with all positions and batch extent 1
  PositionSlices slices;  // unless it is a kSum
};

// Place of a message in a round. A kSum is of whole samples: slice 0.
struct PartMessage {
  int part = 0, slice = 0;
};

// Returns the layers of a block at which there are rounds, in model order.
std::vector<const LayerSpec*> LayersWithRounds(const BlockSpec& block);

// Returns the rounds of a layer, in order, in the forward or the backward pass of whole samples.
std::vector<PartRound> RoundsOf(const LayerSpec& layer, bool gradient);

// Returns the round of a sum in which few positions of a text go forward, which have no slices.
PartRound RoundOfText(const LayerSpec& sum);

// Returns what a part sends in a round, in order.
std::vector<PartMessage> MessagesOf(const PartRound& round, int parts, int part);

// Returns the shape of a message, with batch extent 1.
Shape SampleOf(const PartRound& round, const PartMessage& message);

// Returns the number of a message of the round. `layer` is the place of its layer among those of
// the model with rounds.
uint32_t NumberOf(const PartRound& round, uint32_t layer, int parts, const PartMessage& message);

}  // namespace thinwire
