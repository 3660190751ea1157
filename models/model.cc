#include "models/model.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace thinwire {
namespace {

using Init = ParameterSpec::Init;

// Properties of a kind of layer.
struct KindRow {
  LayerKind value;
  const char* name;         // Name of this kind
  bool has_name = false;    // HasName of this kind
  bool keeps_input = true;  // KeepsInput of a layer of this kind without a body and a shortcut
};

constexpr KindRow kKinds[] = {{LayerKind::kConv2d, "conv", true},
                              {LayerKind::kBatchNorm, "batch_norm", true},
                              {LayerKind::kLayerNorm, "layer_norm", true},
                              {LayerKind::kReLU, "relu", false, false},
                              {LayerKind::kMaxPool, "max_pool"},
                              {LayerKind::kMaxout, "maxout"},
                              {LayerKind::kResize, "resize", false, false},
                              {LayerKind::kGlobalAvgPool, "global_avg_pool", false, false},
                              {LayerKind::kFlatten, "flatten", false, false},
                              {LayerKind::kLinear, "linear", true},
                              {LayerKind::kResidual, "residual", false, false},
                              {LayerKind::kEmbedding, "embedding", true},
                              {LayerKind::kPositionEmbedding, "position_embedding", true, false},
                              {LayerKind::kRmsNorm, "rms_norm", true},
                              {LayerKind::kGelu, "gelu"},
                              {LayerKind::kSwiglu, "swiglu"},
                              {LayerKind::kAttention, "attention", true},
                              {LayerKind::kHeadNorm, "head_norm", true},
                              {LayerKind::kDropout, "dropout", true, false},
                              {LayerKind::kSequence, "sequence", false, false},
                              {LayerKind::kClassToken, "class_token", true, false},
                              {LayerKind::kTypeEmbedding, "type_embedding", true, false},
                              {LayerKind::kFirst, "first", false, false},
                              {LayerKind::kTanh, "tanh"}};

// Layers that experiment files cannot have.
constexpr KindRow kInternalKinds[] = {{LayerKind::kSum, "sum", true, false},
                                      {LayerKind::kPart, "part", false, false},
                                      {LayerKind::kToSlices, "to_slices", false, false},
                                      {LayerKind::kToWhole, "to_whole", false, false},
                                      {LayerKind::kProject, "project", true},
                                      {LayerKind::kExpand, "expand", true},
                                      {LayerKind::kAnchor, "anchor", true, false}};

static_assert(std::size(kKinds) + std::size(kInternalKinds) ==
                  static_cast<size_t>(LayerKind::kAnchor) + 1,
              "each kind has a row");

const KindRow& RowOf(LayerKind kind) {
  const auto is_row = [kind](const KindRow& row) { return row.value == kind; };
  const auto* const internal =
      std::find_if(std::begin(kInternalKinds), std::end(kInternalKinds), is_row);
  return internal != std::end(kInternalKinds)
             ? *internal
             : *std::find_if(std::begin(kKinds), std::end(kKinds), is_row);
}

constexpr Named<GeluForm> kGeluNames[] = {{GeluForm::kTanh, "tanh"}, {GeluForm::kExact, "exact"}};

// Deviation of GPT-2's embeddings (Radford et al., 2019), and of BERT's.
constexpr double kEmbeddingDeviation = 0.02;

std::vector<FilePart> PartsNamed(const std::vector<FilePart>& layers, const char* parameter) {
  std::vector<FilePart> parts = layers;
  for (FilePart& part : parts) part.name += parameter;
  return parts;
}

std::string WeightOf(const std::string& layer) { return layer.empty() ? "" : layer + ".weight"; }

// Makes of the whole parameter `of` the part that a layer's slice has.
void TakeSlice(const LayerSpec& layer, const std::string& name, ParameterSpec* of) {
  of->slice = {of->name, of->shape, layer.slice.rows, layer.slice.columns};
  of->name = layer.name + name;
  of->shape = of->shape.With(0, layer.out_features);
  if (of->shape.rank() == 2) of->shape = of->shape.With(1, layer.in_features);
}

// Returns the weight, of `shape`, and the bias of a convolution or linear layer. The bias starts as
// in PyTorch unless the layer has a deviation.
std::vector<ParameterSpec> WeightAndBias(const LayerSpec& layer, Shape shape) {
  const int64_t fan_in = shape.elements() / shape[0], fan_out = shape.elements() / shape[1];
  const bool is_normal = layer.deviation > 0;
  ParameterSpec weight = {
      layer.name + ".weight",        shape,  is_normal ? Init::kNormal : layer.init, fan_in,
      ParameterSpec::Role::kTrained, fan_out};
  weight.deviation = layer.deviation;
  if (!layer.tied_to.empty()) weight.tied_to = layer.tied_to + ".weight";
  weight.transposed = layer.transposed;
  weight.hidden = !layer.is_end && layer.tied_to.empty();
  weight.parts = PartsNamed(layer.parts, ".weight");
  weight.within = WeightOf(layer.within);
  std::vector<ParameterSpec> parameters = {std::move(weight)};
  if (layer.bias) {
    ParameterSpec bias = {layer.name + ".bias", Shape{layer.out_features},
                          is_normal ? Init::kZeros : Init::kUniformFanIn, fan_in};
    bias.parts = PartsNamed(layer.parts, ".bias");
    if (!layer.bias_name.empty()) bias.parts = {{layer.bias_name, layer.out_features}};
    bias.within = WeightOf(layer.within);
    parameters.push_back(std::move(bias));
  }
  return parameters;
}

// Returns the same of a linear layer, or of its slice.
std::vector<ParameterSpec> LinearParameters(const LayerSpec& layer) {
  if (layer.slice.whole.empty()) {
    return WeightAndBias(layer, {layer.out_features, layer.in_features});
  }
  LayerSpec whole = layer;
  whole.name = layer.slice.whole;
  whole.in_features = layer.slice.in_features;
  whole.out_features = layer.slice.out_features;
  std::vector<ParameterSpec> parameters =
      WeightAndBias(whole, {whole.out_features, whole.in_features});
  TakeSlice(layer, ".weight", &parameters[0]);
  if (layer.bias) TakeSlice(layer, ".bias", &parameters[1]);
  return parameters;
}

std::vector<ParameterSpec> BasisParameters(const LayerSpec& layer) {
  const bool projects = layer.kind == LayerKind::kProject;
  ParameterSpec basis = {layer.name + ".weight",
                         projects ? Shape{layer.out_features, layer.in_features}
                                  : Shape{layer.in_features, layer.out_features},
                         Init::kOrthonormal};
  if (!layer.trained) basis.role = ParameterSpec::Role::kFrozen;
  basis.tied_to = WeightOf(layer.copies);
  basis.hidden = basis.orthonormal = true;
  basis.rate = layer.rate;
  return {std::move(basis)};
}

std::vector<ParameterSpec> AnchorParameters(const LayerSpec& layer) {
  if (!layer.shares.empty()) return {};
  ParameterSpec table = {layer.name + ".weight",
                         {layer.vocabulary, layer.trained ? layer.rank : layer.in_features},
                         layer.trained ? Init::kZeros : Init::kNormal};
  table.deviation = layer.deviation;
  if (!layer.trained) table.role = ParameterSpec::Role::kFrozen;
  table.tied_to = WeightOf(layer.copies);
  if (!layer.trained) return {std::move(table)};
  ParameterSpec factor = {
      layer.name + ".factor", {layer.rank, layer.in_features}, Init::kOrthonormal};
  factor.role = ParameterSpec::Role::kFrozen;
  return {std::move(table), std::move(factor)};
}

std::vector<ParameterSpec> TableParameters(const LayerSpec& layer, int64_t rows) {
  ParameterSpec table = {layer.name + ".weight", Shape{rows, layer.out_features}, Init::kNormal};
  table.deviation = layer.deviation;
  table.within = WeightOf(layer.within);
  return {std::move(table)};
}

// Returns a table [1, rows, features] that is called as its layer.
std::vector<ParameterSpec> BareTableParameters(const LayerSpec& layer, int64_t rows) {
  ParameterSpec table = {layer.name, Shape{1, rows, layer.out_features}, Init::kNormal};
  table.deviation = layer.deviation;
  return {std::move(table)};
}

// An RMS norm never has a bias.
std::vector<ParameterSpec> RowNormParameters(const LayerSpec& layer) {
  const Shape features = {layer.in_features};
  std::vector<ParameterSpec> parameters = {{layer.name + ".weight", features, Init::kOnes}};
  if (layer.kind == LayerKind::kLayerNorm && layer.bias) {
    parameters.push_back({layer.name + ".bias", features, Init::kZeros});
  }
  for (ParameterSpec& parameter : parameters) parameter.slices = layer.slices;
  return parameters;
}

// Returns the scales of a head of queries and of one of keys, one after the other.
std::vector<ParameterSpec> HeadNormParameters(const LayerSpec& layer) {
  ParameterSpec scale = {layer.name + ".weight", Shape{2 * HeadSize(layer)}, Init::kOnes};
  scale.parts = PartsNamed(layer.parts, ".weight");
  return {std::move(scale)};
}

std::vector<ParameterSpec> BatchNormParameters(const LayerSpec& layer) {
  constexpr ParameterSpec::Role kStatistics = ParameterSpec::Role::kStatistics;
  const Shape channels = {layer.in_features};
  return {{layer.name + ".weight", channels, Init::kOnes},
          {layer.name + ".bias", channels, Init::kZeros},
          {layer.name + ".running_mean", channels, Init::kZeros, 0, kStatistics},
          {layer.name + ".running_var", channels, Init::kOnes, 0, kStatistics}};
}

std::vector<ParameterSpec> ParametersOfAll(const std::vector<LayerSpec>& layers) {
  std::vector<ParameterSpec> all;
  for (const LayerSpec& layer : layers) {
    for (ParameterSpec& parameter : Parameters(layer)) all.push_back(std::move(parameter));
  }
  return all;
}

// Returns whether the gradient of the layer's weight is a product of its own.
bool HasWeight(LayerKind kind) { return kind == LayerKind::kConv2d || kind == LayerKind::kLinear; }

// Returns the FLOPs of queries times keys and weights times values, for each pair of a position and
// one that it sees.
double PairFlops(const LayerSpec& layer) {
  const double positions = layer.in[1], features = layer.heads * HeadSize(layer);
  const double sees = layer.window > 0 ? std::min<double>(layer.window, positions) : positions;
  const double pairs =
      layer.causal ? sees * (sees + 1) / 2 + (positions - sees) * sees : positions * positions;
  return 2 * 2 * features * pairs;
}

// Returns the part of a linear layer's FLOPs in its adapters.
double AdapterFlops(const LayerSpec& layer) {
  double flops = 0;
  for (const AdapterSpec& adapter : layer.adapters) {
    const double rows = layer.out.elements() / layer.out_features;
    flops += 2 * rows * layer.adapter_rank * (layer.in_features + adapter.rows.count);
  }
  return flops;
}

// Returns the FLOPs of the layer itself, without its body and shortcut.
double FlopsOf(const LayerSpec& layer) {
  switch (layer.kind) {
    case LayerKind::kAttention:
      return PairFlops(layer);
    case LayerKind::kConv2d:
    case LayerKind::kLinear:
    case LayerKind::kProject:
    case LayerKind::kExpand: {
      const double taps = layer.kind == LayerKind::kConv2d ? layer.kernel * layer.kernel : 1;
      return 2.0 * layer.out.elements() * layer.in_features * taps + AdapterFlops(layer);
    }
    case LayerKind::kAnchor:
      return layer.trained ? 2.0 * layer.out.elements() * layer.rank : 0;
    default:
      return 0;
  }
}

// Returns the FLOPs of the layers for which `counts` is true, in bodies and shortcuts too.
template <typename Counts>
double FlopsOfAll(const std::vector<LayerSpec>& layers, const Counts& counts) {
  double flops = 0;
  ForEachLayer(layers, [&](const LayerSpec& layer) {
    if (counts(layer)) flops += FlopsOf(layer);
  });
  return flops;
}

}  // namespace

const char* Name(LayerKind kind) { return RowOf(kind).name; }

absl::Status FromName(const std::string& name, LayerKind* to) {
  return FindNameIn("layer", name, kKinds, to);
}

std::vector<LayerKind> AllLayerKinds() { return AllIn(kKinds); }

NameTable<GeluForm> TableOf(GeluForm) { return {"gelu", kGeluNames}; }

bool HasWaitingWeight(const LayerSpec& layer) {
  switch (layer.kind) {
    case LayerKind::kConv2d:
    case LayerKind::kLinear:
      return !layer.frozen;
    case LayerKind::kProject:
    case LayerKind::kExpand:
      return layer.trained;
    default:
      return false;
  }
}

double FrozenWeightFlops(const BlockSpec& block) {
  double flops = 0;
  ForEachLayer(block.layers, [&flops](const LayerSpec& layer) {
    // Adapters are trained.
    if (layer.frozen && HasWeight(layer.kind)) flops += FlopsOf(layer) - AdapterFlops(layer);
  });
  return flops;
}

bool HasName(LayerKind kind) { return RowOf(kind).has_name; }

bool KeepsInput(const LayerSpec& layer) {
  const auto first_keeps = [](const std::vector<LayerSpec>& layers) {
    return !layers.empty() && KeepsInput(layers.front());
  };
  // Parts keep the whole samples, not the slices.
  if (layer.kind == LayerKind::kSum && !layer.slices.are_whole()) return false;
  if (layer.frozen && HasWeight(layer.kind) && layer.adapters.empty()) return false;
  return RowOf(layer.kind).keeps_input || first_keeps(layer.body) || first_keeps(layer.shortcut);
}

bool IsRandom(const std::vector<LayerSpec>& layers) {
  return std::any_of(layers.begin(), layers.end(), [](const LayerSpec& layer) {
    const bool drops = layer.dropout > 0 || layer.adapter_dropout > 0;
    return drops || IsRandom(layer.body) || IsRandom(layer.shortcut);
  });
}

bool ReadsIds(const std::vector<LayerSpec>& layers) {
  return std::any_of(layers.begin(), layers.end(), [](const LayerSpec& layer) {
    const bool reads =
        layer.kind == LayerKind::kAnchor || layer.pad != kNoId || layer.separator != kNoId;
    return reads || ReadsIds(layer.body) || ReadsIds(layer.shortcut);
  });
}

const LayerSpec* NeedsWholeSequences(const std::vector<LayerSpec>& layers) {
  for (const LayerSpec& layer : layers) {
    if (!layer.causal || layer.separator != kNoId) return &layer;
    if (layer.kind == LayerKind::kClassToken || layer.kind == LayerKind::kFirst) return &layer;
    for (const auto* branch : {&layer.body, &layer.shortcut}) {
      if (const LayerSpec* const found = NeedsWholeSequences(*branch)) return found;
    }
  }
  return nullptr;
}

bool IsCausalLanguage(const Model& model) {
  return model.is_language() &&
         std::none_of(model.blocks.begin(), model.blocks.end(), [](const BlockSpec& block) {
           return NeedsWholeSequences(block.layers) != nullptr;
         });
}

int64_t HeadSize(const LayerSpec& attention) {
  const int64_t kv_heads = attention.kv_heads == 0 ? attention.heads : attention.kv_heads;
  return attention.in[attention.in.rank() - 1] / (attention.heads + 2 * kv_heads);
}

LayerSpec NewLayer(LayerKind kind, std::string name) {
  LayerSpec layer;
  layer.kind = kind;
  layer.name = std::move(name);
  return layer;
}

LayerSpec DefaultLayer(LayerKind kind) {
  LayerSpec layer = NewLayer(kind);
  layer.bias =
      kind == LayerKind::kConv2d || kind == LayerKind::kLinear || kind == LayerKind::kLayerNorm;
  if (kind == LayerKind::kMaxPool) layer.stride = 0;
  if (kind == LayerKind::kEmbedding || kind == LayerKind::kPositionEmbedding ||
      kind == LayerKind::kTypeEmbedding || kind == LayerKind::kClassToken) {
    layer.deviation = kEmbeddingDeviation;
  }
  if (kind == LayerKind::kTypeEmbedding) layer.vocabulary = 2;
  return layer;
}

namespace {

// Returns the parameters of a layer, of which those of layers inside it may be frozen.
std::vector<ParameterSpec> ParametersBeforeFreezing(const LayerSpec& layer) {
  switch (layer.kind) {
    case LayerKind::kConv2d:
      return WeightAndBias(layer,
                           {layer.out_features, layer.in_features, layer.kernel, layer.kernel});
    case LayerKind::kLinear:
      return LinearParameters(layer);
    case LayerKind::kBatchNorm:
      return BatchNormParameters(layer);
    case LayerKind::kLayerNorm:
    case LayerKind::kRmsNorm:
      return RowNormParameters(layer);
    case LayerKind::kHeadNorm:
      return HeadNormParameters(layer);
    case LayerKind::kResidual: {
      std::vector<ParameterSpec> all = ParametersOfAll(layer.body);
      for (ParameterSpec& p : ParametersOfAll(layer.shortcut)) all.push_back(std::move(p));
      return all;
    }
    case LayerKind::kPart: {
      std::vector<ParameterSpec> all = ParametersOfAll(layer.body);
      for (ParameterSpec& parameter : all) parameter.slice.part = layer.part;
      return all;
    }
    case LayerKind::kSum: {
      std::vector<ParameterSpec> all = ParametersOfAll(layer.body);
      if (layer.bias) {
        all.push_back(WeightAndBias(layer, {layer.out_features, layer.in_features}).back());
        all.back().slices = layer.slices;
        if (layer.frozen) all.back().role = ParameterSpec::Role::kFrozen;
      }
      return all;
    }
    case LayerKind::kEmbedding:
      return TableParameters(layer, layer.vocabulary);
    case LayerKind::kPositionEmbedding:
      return layer.is_bare ? BareTableParameters(layer, layer.context)
                           : TableParameters(layer, layer.context);
    case LayerKind::kTypeEmbedding:
      return TableParameters(layer, layer.vocabulary);
    case LayerKind::kClassToken:
      return BareTableParameters(layer, 1);
    case LayerKind::kProject:
    case LayerKind::kExpand:
      return BasisParameters(layer);
    case LayerKind::kAnchor:
      return AnchorParameters(layer);
    case LayerKind::kReLU:
    case LayerKind::kMaxPool:
    case LayerKind::kGlobalAvgPool:
    case LayerKind::kFlatten:
    case LayerKind::kMaxout:
    case LayerKind::kResize:
    case LayerKind::kGelu:
    case LayerKind::kSwiglu:
    case LayerKind::kAttention:
    case LayerKind::kDropout:
    case LayerKind::kSequence:
    case LayerKind::kFirst:
    case LayerKind::kTanh:
    case LayerKind::kToSlices:
    case LayerKind::kToWhole:
      break;
  }
  return {};
}

}  // namespace

std::vector<ParameterSpec> Parameters(const LayerSpec& layer) {
  std::vector<ParameterSpec> all = ParametersBeforeFreezing(layer);
  for (ParameterSpec& parameter : all) {
    const bool is_own = layer.body.empty() && layer.shortcut.empty();
    if (is_own && layer.frozen && parameter.is_trained()) {
      parameter.role = ParameterSpec::Role::kFrozen;
    }
  }
  if (layer.format != WeightFormat::kFP32) all.front().format = layer.format;  // the weight
  for (const AdapterSpec& adapter : layer.adapters) {
    all.push_back({adapter.name + ".lora_A.weight",
                   {layer.adapter_rank, layer.in_features},
                   Init::kUniformFanIn,
                   layer.in_features});
    all.push_back({adapter.name + ".lora_B.weight", {adapter.rows.count, layer.adapter_rank}});
    all.back().hidden = all[all.size() - 2].hidden = true;
  }
  return all;
}

std::vector<ParameterSpec> Parameters(const BlockSpec& block) {
  return ParametersOfAll(block.layers);
}

int64_t TrainableParameters(const Model& model) {
  int64_t elements = 0;
  for (const BlockSpec& block : model.blocks) {
    for (const ParameterSpec& parameter : Parameters(block)) {
      const bool counts = parameter.is_trained() && parameter.tied_to.empty();
      if (counts) elements += parameter.shape.elements();
    }
  }
  return elements;
}

double ForwardFlops(const BlockSpec& block) {
  return FlopsOfAll(block.layers, [](const LayerSpec&) { return true; });
}

double AttentionFlops(const BlockSpec& block) {
  return FlopsOfAll(block.layers,
                    [](const LayerSpec& layer) { return layer.kind == LayerKind::kAttention; });
}

int64_t CountLayers(const BlockSpec& block) {
  int64_t count = 0;
  ForEachLayer(block.layers, [&](const LayerSpec&) { ++count; });
  return count;
}

double WeightFlops(const BlockSpec& block) { return FlopsOfAll(block.layers, HasWaitingWeight); }

}  // namespace thinwire
