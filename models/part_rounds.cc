#include "models/part_rounds.h"

namespace thinwire {

std::vector<const LayerSpec*> LayersWithRounds(const BlockSpec& block) {
  std::vector<const LayerSpec*> layers;
  ForEachLayer(block.layers, [&layers](const LayerSpec& layer) {
    const bool has_rounds = layer.kind == LayerKind::kSum || layer.kind == LayerKind::kToSlices ||
                            layer.kind == LayerKind::kToWhole;
    if (has_rounds) layers.push_back(&layer);
  });
  return layers;
}

std::vector<PartRound> RoundsOf(const LayerSpec& layer, bool gradient) {
  const Shape &x = gradient ? layer.out : layer.in, &y = gradient ? layer.in : layer.out;
  const PartRound gather{PartExchange::kGather, x, layer.slices};
  switch (layer.kind) {
    case LayerKind::kSum:
      if (layer.slices.are_whole()) return {{PartExchange::kSum, y, {}}};
      return {gather, {PartExchange::kScatter, y, layer.slices}};
    case LayerKind::kToSlices:
      if (gradient) return {gather};
      return {};
    case LayerKind::kToWhole:
      if (!gradient) return {gather};
      return {};
    default:
      return {};
  }
}

PartRound RoundOfText(const LayerSpec& sum) { return {PartExchange::kSum, sum.out, {}}; }

std::vector<PartMessage> MessagesOf(const PartRound& round, int parts, int part) {
  if (round.kind == PartExchange::kSum) return {{part, 0}};
  if (round.kind == PartExchange::kGather) return {{part, part}};
  std::vector<PartMessage> messages;
  for (int slice = 0; slice < parts; ++slice) messages.push_back({part, slice});
  return messages;
}

Shape SampleOf(const PartRound& round, const PartMessage& message) {
  if (round.kind == PartExchange::kSum) return round.sample;
  return round.sample.With(1, round.slices.Of(message.slice).count);
}

uint32_t NumberOf(const PartRound& round, uint32_t layer, int parts, const PartMessage& message) {
  const auto all = static_cast<uint32_t>(parts), part = static_cast<uint32_t>(message.part),
             slice = static_cast<uint32_t>(message.slice);
  if (round.kind == PartExchange::kSum) return layer * all + part;
  const uint32_t row = round.kind == PartExchange::kScatter ? part : all;
  return (layer * (all + 1) + row) * all + slice;
}

}  // namespace thinwire
