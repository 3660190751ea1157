// Helpers of the tests of segments: random tensors, and models made of a few layers.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "models/shapes.h"
#include "models/zoo.h"
#include "nn/cpu/ops.h"
#include "nn/segment/segment.h"
#include "tensor/cpu/device.h"

namespace thinwire {

// Returns values uniform in [-1, 1) that depend only on (shape, name).
inline Tensor RandomTensor(const Shape& shape, const std::string& name) {
  Tensor tensor = *Tensor::Allocate(CpuDevice(), DType::kF32, shape);
  RandomStream random(RandomKey(7, name));
  for (float& value : tensor.floats()) value = 2 * random.NextFloat() - 1;
  return tensor;
}

// Returns token ids in [0, vocabulary) that depend only on (shape, name).
inline Tensor RandomIds(const Shape& shape, int64_t vocabulary, const std::string& name) {
  Tensor tensor = *Tensor::Allocate(CpuDevice(), DType::kI32, shape);
  RandomStream random(RandomKey(7, name));
  auto* const ids = static_cast<int32_t*>(tensor.data());
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    ids[i] = static_cast<int32_t>(random.Below(static_cast<uint32_t>(vocabulary)));
  }
  return tensor;
}

inline Tensor Converted(const Tensor& tensor, DType type, Ops* ops) {
  Tensor converted = *Tensor::Allocate(CpuDevice(), type, tensor.shape());
  EXPECT_TRUE(ops->Convert(tensor.view(), converted.view()).ok());
  return converted;
}

inline std::vector<float> Values(const Tensor& tensor) {
  const auto floats = tensor.floats();
  return std::vector<float>(floats.begin(), floats.end());
}

// Returns |a - b| / |b| in the Euclidean norm.
inline double RelativeDistance(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double distance = 0, norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    distance += difference * difference;
    norm += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return std::sqrt(distance / norm);
}
inline double RelativeDistance(const Tensor& a, const Tensor& b) {
  return RelativeDistance(Values(a), Values(b));
}

inline LayerSpec LayerOf(LayerKind kind, std::string name = "") {
  LayerSpec spec;
  spec.kind = kind;
  spec.name = std::move(name);
  return spec;
}

inline LayerSpec ConvSpec(std::string name, int64_t out, int64_t kernel, int64_t stride,
                          int64_t padding, bool bias = false) {
  LayerSpec spec = LayerOf(LayerKind::kConv2d, std::move(name));
  spec.out_features = out;
  spec.kernel = kernel;
  spec.stride = stride;
  spec.padding = padding;
  spec.bias = bias;
  return spec;
}

inline LayerSpec LinearLayerSpec(std::string name, int64_t out, bool bias = true) {
  LayerSpec spec = LayerOf(LayerKind::kLinear, std::move(name));
  spec.out_features = out;
  spec.bias = bias;
  return spec;
}

inline LayerSpec MaxoutSpec(int64_t group) {
  LayerSpec spec = LayerOf(LayerKind::kMaxout);
  spec.group = group;
  return spec;
}

inline LayerSpec ResizeSpec(int64_t out) {
  LayerSpec spec = LayerOf(LayerKind::kResize);
  spec.out_features = out;
  return spec;
}

inline LayerSpec ResidualSpec(std::vector<LayerSpec> body, std::vector<LayerSpec> shortcut = {}) {
  LayerSpec spec = LayerOf(LayerKind::kResidual);
  spec.body = std::move(body);
  spec.shortcut = std::move(shortcut);
  return spec;
}

inline LayerSpec AttentionOf(int64_t heads, int64_t kv_heads, double rope_theta = 0,
                             double dropout = 0) {
  LayerSpec spec = LayerOf(LayerKind::kAttention, "attn");
  spec.heads = heads;
  spec.kv_heads = kv_heads;
  spec.rope_theta = rope_theta;
  spec.dropout = dropout;
  return spec;
}

inline LayerSpec WithoutCausality(LayerSpec attention, int64_t pad = kNoId) {
  attention.causal = false;
  attention.pad = pad;
  return attention;
}

inline LayerSpec WithWindow(LayerSpec attention, int64_t window) {
  attention.window = window;
  return attention;
}

inline LayerSpec DropoutOf(double rate, std::string name = "drop") {
  LayerSpec spec = LayerOf(LayerKind::kDropout, std::move(name));
  spec.dropout = rate;
  return spec;
}

// Returns a language model of two blocks: `name` is gpt2, or one like llama with four heads that
// share two, which may have a window.
inline constexpr int64_t kTinyPositions = 6, kTinyVocabulary = 11;
inline Model TinyLanguageModel(const std::string& name, double dropout = 0, bool tied = true,
                               int64_t window = 0) {
  ModelOptions options = *OptionsOf(name);
  options.input = {1, kTinyPositions};
  options.classes = kTinyVocabulary;
  options.layers = 2;
  options.heads = 4;
  options.kv_heads = options.family == ModelFamily::kLlama ? 2 : 0;
  options.width = 16;
  options.hidden = 24;
  options.dropout = dropout;
  options.tied = tied;
  options.window = window;
  absl::StatusOr<Model> model = NamedModel(options);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

// Returns ids below kTinyVocabulary for a tiny BERT. Sample i ends with i of kTinyPad; the first
// also has kTinySeparator twice.
inline constexpr int64_t kTinyPad = 0, kTinySeparator = 1;
inline Tensor PaddedIds(int64_t batch) {
  Tensor tensor = RandomIds({batch, kTinyPositions}, kTinyVocabulary - 2, "ids");
  auto* const ids = static_cast<int32_t*>(tensor.data());
  for (int64_t i = 0; i < batch * kTinyPositions; ++i) {
    const bool pads = i % kTinyPositions + i / kTinyPositions >= kTinyPositions;
    ids[i] = pads ? static_cast<int32_t>(kTinyPad) : ids[i] + 2;
  }
  ids[1] = ids[4] = static_cast<int32_t>(kTinySeparator);
  return tensor;
}

// Returns a BERT of two blocks, for PaddedIds; with head kClasses it has three classes.
inline Model TinyBert(BertHead head, double dropout = 0) {
  ModelOptions options = *OptionsOf("bert");
  options.input = {1, kTinyPositions};
  options.head = head;
  options.vocabulary = kTinyVocabulary;
  options.classes = head == BertHead::kMasked ? kTinyVocabulary : 3;
  options.pad = kTinyPad;
  options.separator = kTinySeparator;
  options.layers = 2;
  options.heads = 4;
  options.width = 16;
  options.hidden = 24;
  options.dropout = dropout;
  absl::StatusOr<Model> model = NamedModel(options);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

// Returns a ViT of two blocks with three classes, for images of two by three patches of 2 x 2.
inline Model TinyVit(double dropout = 0) {
  ModelOptions options = *OptionsOf("vit");
  options.input = {1, 4, 6, 3};
  options.classes = 3;
  options.patch = 2;
  options.layers = 2;
  options.heads = 4;
  options.width = 16;
  options.hidden = 24;
  options.dropout = dropout;
  absl::StatusOr<Model> model = NamedModel(options);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

// Returns one block of `layers` on samples of shape `input` (batch extent 1).
inline std::vector<BlockSpec> OneBlock(std::vector<LayerSpec> layers, const Shape& input) {
  Model model;
  model.input = input;
  model.blocks.resize(1);
  model.blocks[0].name = "block";
  model.blocks[0].layers = std::move(layers);
  const absl::Status status = FillShapes(&model);
  EXPECT_TRUE(status.ok()) << status;
  return model.blocks;
}

inline std::unique_ptr<Segment> Built(absl::Span<const BlockSpec> blocks, Ops* ops,
                                      DType compute = DType::kF32,
                                      bool needs_input_gradient = true) {
  SegmentOptions options;
  options.device = CpuDevice();
  options.ops = ops;
  options.compute = compute;
  options.init_seed = 3;
  options.needs_input_gradient = needs_input_gradient;
  auto segment = BuildSegment(blocks, options);
  EXPECT_TRUE(segment.ok()) << segment.status();
  return *std::move(segment);
}

}  // namespace thinwire
