#include "models/bottleneck.h"

#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/enum_names.h"
#include "base/status.h"
#include "models/zoo.h"

namespace thinwire {
namespace {

using Layers = std::vector<LayerSpec>;

constexpr int64_t kMostHidden = 1 << 20;   // features
constexpr char kPrefix[] = "bottleneck.";  // then the cut's name, the layer's, the parameter's

constexpr Named<BottleneckKind> kKindNames[] = {{BottleneckKind::kNone, "none"},
                                                {BottleneckKind::kLinear, "linear"},
                                                {BottleneckKind::kLayerNorm, "layer_norm"},
                                                {BottleneckKind::kMaxout, "maxout"},
                                                {BottleneckKind::kResidual, "residual"}};

LayerSpec Norm(std::string name) {
  LayerSpec layer;
  layer.kind = LayerKind::kLayerNorm;
  layer.name = std::move(name);
  layer.bias = true;
  return layer;
}

LayerSpec Maxout(int64_t group) {
  LayerSpec layer;
  layer.kind = LayerKind::kMaxout;
  layer.group = group;
  return layer;
}

LayerSpec Map(std::string name, int64_t out_features, bool image) {
  LayerSpec layer;
  layer.kind = image ? LayerKind::kConv2d : LayerKind::kLinear;
  layer.name = std::move(name);
  layer.out_features = out_features;
  layer.kernel = 1;
  layer.init = ParameterSpec::Init::kXavierUniform;
  return layer;
}

// I + B, from the norm, the first and the last map of that name.
LayerSpec Residual(const std::string& norm, const std::string& map, int64_t hidden,
                   int64_t out_features, bool image) {
  LayerSpec rms_norm, gelu, identity, residual;
  rms_norm.kind = LayerKind::kRmsNorm;
  rms_norm.name = norm;
  gelu.kind = LayerKind::kGelu;
  identity.kind = LayerKind::kResize;
  identity.out_features = out_features;
  residual.kind = LayerKind::kResidual;
  residual.body = {rms_norm, Map(map + "_in", hidden, image), gelu, Map(map, out_features, image)};
  residual.shortcut = {identity};
  return residual;
}

absl::Status Refused(const char* field, int64_t value, const std::string& wanted) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", value, ", want ", wanted));
}

// A layer norm of one feature is constant, so a code of two is the narrowest that can be normed.
absl::Status Check(const BottleneckSpec& spec, int64_t channels) {
  if (spec.kind == BottleneckKind::kMaxout) {
    if (spec.group >= 1 && channels % spec.group == 0 && channels / spec.group >= 2) {
      return absl::OkStatus();
    }
    return Refused(
        "group", spec.group,
        absl::StrCat("a divisor of the cut's ", channels, " channels that leaves at least 2"));
  }
  if (spec.hidden < 0 || spec.hidden > kMostHidden) {
    return Refused("hidden", spec.hidden, absl::StrCat("1 to ", kMostHidden));
  }
  const int64_t least = spec.kind == BottleneckKind::kLayerNorm ? 2 : 1;
  if (least <= spec.width && spec.width <= channels) return absl::OkStatus();
  return Refused("width", spec.width,
                 absl::StrCat(least, " to ", channels, ", the channels of the cut"));
}

int64_t HiddenOf(const BottleneckSpec& spec) {
  return spec.hidden > 0 ? spec.hidden : 4 * spec.width;
}

Layers Encoder(const BottleneckSpec& spec, const std::string& name, bool image) {
  switch (spec.kind) {
    case BottleneckKind::kNone:
      break;
    case BottleneckKind::kLinear:
      return {Map(name + ".encode", spec.width, image)};
    case BottleneckKind::kLayerNorm:
      return {Norm(name + ".norm"), Map(name + ".encode", spec.width, image),
              Norm(name + ".code_norm")};
    case BottleneckKind::kMaxout:
      return {Norm(name + ".norm"), Maxout(spec.group), Norm(name + ".code_norm")};
    case BottleneckKind::kResidual:
      return {Residual(name + ".norm", name + ".encode", HiddenOf(spec), spec.width, image)};
  }
  return {};
}

LayerSpec Decoder(const BottleneckSpec& spec, const std::string& name, int64_t channels,
                  bool image) {
  if (spec.kind != BottleneckKind::kResidual) return Map(name + ".decode", channels, image);
  return Residual(name + ".code_norm", name + ".decode", HiddenOf(spec), channels, image);
}

}  // namespace

const char* Name(BottleneckKind kind) { return NameIn(kKindNames, kind); }

absl::Status FromName(const std::string& name, BottleneckKind* to) {
  return FindName("bottleneck", name, kKindNames, to);
}

std::vector<BottleneckKind> AllBottleneckKinds() { return ValuesIn(kKindNames); }

std::string CutOfBottleneck(const std::string& parameter) {
  constexpr size_t kBegin = sizeof(kPrefix) - 1;
  if (parameter.compare(0, kBegin, kPrefix) != 0) return "";
  const size_t end = parameter.rfind('.', parameter.rfind('.') - 1);
  const bool has_cut = end != std::string::npos && end > kBegin;
  return has_cut ? parameter.substr(kBegin, end - kBegin) : "";
}

absl::StatusOr<Model> WithBottlenecks(Model model, const std::vector<Cut>& cuts,
                                      const std::vector<BottleneckSpec>& specs) {
  assert(cuts.size() == specs.size());
  for (size_t i = 0; i < cuts.size(); ++i) {
    if (specs[i].kind == BottleneckKind::kNone) continue;
    BlockSpec& before = model.blocks[cuts[i].block];
    BlockSpec& behind = model.blocks[cuts[i].block + 1];
    const int64_t channels = behind.in[behind.in.rank() - 1];
    const absl::Status status = Check(specs[i], channels);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cut ", cuts[i].name, ": ", Name(specs[i].kind), " bottleneck: ", status.message()));
    }
    const std::string name = absl::StrCat(kPrefix, cuts[i].name);
    const bool image = behind.in.rank() == 4;
    for (LayerSpec& layer : Encoder(specs[i], name, image)) {
      before.layers.push_back(std::move(layer));
    }
    behind.layers.insert(behind.layers.begin(), Decoder(specs[i], name, channels, image));
  }
  // Checks names against the model's own and fills the shapes anew.
  return CustomModel(std::move(model.name), std::move(model.blocks), model.input, model.classes);
}

}  // namespace thinwire
