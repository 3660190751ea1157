#include "models/zoo.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/nearest_name.h"
#include "base/status.h"
#include "models/shapes.h"

namespace thinwire {
namespace {

struct ResNetForm : KnownModel {
  std::vector<int> blocks;  // per group; each group after the first doubles the width
};

const std::vector<ResNetForm>& ResNetForms() {
  static const auto* const forms = new std::vector<ResNetForm>{
      {{"resnet8", 16}, {1, 1, 1}},
      {{"resnet18", 64}, {2, 2, 2, 2}},
      {{"resnet20", 16}, {3, 3, 3}},
      {{"resnet34", 64}, {3, 4, 6, 3}},
  };
  return *forms;
}

absl::StatusOr<ResNetForm> FormOf(const std::string& name) {
  std::vector<std::string> names;
  for (const ResNetForm& form : ResNetForms()) {
    if (form.name == name) return form;
    names.push_back(form.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown model '", name, "': did you mean ",
                                                 NearestName(name, names), "? There are ",
                                                 absl::StrJoin(names, ", ")));
}

// Input features are left to the shapes.
LayerSpec Conv(std::string name, int64_t out_features, int64_t kernel, int64_t stride) {
  LayerSpec layer;
  layer.kind = LayerKind::kConv2d;
  layer.name = std::move(name);
  layer.out_features = out_features;
  layer.kernel = kernel;
  layer.stride = stride;
  layer.padding = kernel / 2;
  return layer;
}

LayerSpec Plain(LayerKind kind, std::string name = "") {
  LayerSpec layer;
  layer.kind = kind;
  layer.name = std::move(name);
  return layer;
}

// Two 3x3 convolutions around a shortcut (He et al., CVPR 2016, figure 2).
BlockSpec BasicBlock(const std::string& name, int64_t width, int64_t stride, bool project) {
  LayerSpec residual = Plain(LayerKind::kResidual);
  residual.body = {Conv(name + ".conv1", width, 3, stride),
                   Plain(LayerKind::kBatchNorm, name + ".bn1"), Plain(LayerKind::kReLU),
                   Conv(name + ".conv2", width, 3, 1), Plain(LayerKind::kBatchNorm, name + ".bn2")};
  if (project) {
    residual.shortcut = {Conv(name + ".downsample.0", width, 1, stride),
                         Plain(LayerKind::kBatchNorm, name + ".downsample.1")};
  }
  BlockSpec block;
  block.name = name;
  block.layers = {std::move(residual), Plain(LayerKind::kReLU)};
  return block;
}

BlockSpec Stem(int64_t width) {
  BlockSpec block;
  block.name = "stem";
  block.layers = {Conv("conv1", width, 3, 1), Plain(LayerKind::kBatchNorm, "bn1"),
                  Plain(LayerKind::kReLU)};
  return block;
}

BlockSpec Head(int64_t classes) {
  LayerSpec fc = Plain(LayerKind::kLinear, "fc");
  fc.out_features = classes;
  fc.bias = true;
  BlockSpec block;
  block.name = "head";
  block.layers = {Plain(LayerKind::kGlobalAvgPool), std::move(fc)};
  return block;
}

absl::Status CheckLayerNames(const std::vector<LayerSpec>& layers, std::set<std::string>* seen) {
  for (const LayerSpec& layer : layers) {
    if (HasParameters(layer.kind)) {
      if (layer.name.empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat("a ", Name(layer.kind), " layer has no name"));
      }
      if (!seen->insert(layer.name).second) {
        return absl::InvalidArgumentError(absl::StrCat("two layers are named '", layer.name, "'"));
      }
    }
    RETURN_IF_ERROR(CheckLayerNames(layer.body, seen));
    RETURN_IF_ERROR(CheckLayerNames(layer.shortcut, seen));
  }
  return absl::OkStatus();
}

absl::Status CheckNames(const Model& model) {
  std::set<std::string> blocks, layers;
  for (const BlockSpec& block : model.blocks) {
    if (block.name.empty()) return absl::InvalidArgumentError("a block has no name");
    if (!blocks.insert(block.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("two blocks are named '", block.name, "'"));
    }
    const absl::Status status = CheckLayerNames(block.layers, &layers);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("block ", block.name, ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<KnownModel> KnownModels() { return {ResNetForms().begin(), ResNetForms().end()}; }

absl::StatusOr<Model> NamedModel(const ModelOptions& options) {
  ASSIGN_OR_RETURN(const ResNetForm form, FormOf(options.name));
  const int64_t base_width = options.width == 0 ? form.default_width : options.width;
  constexpr int64_t kMaxWidth = 1 << 16;
  if (base_width < 1 || base_width > kMaxWidth) {
    return absl::InvalidArgumentError(
        absl::StrCat(form.name, ": width is ", base_width, ", want 1 to ", kMaxWidth));
  }
  std::vector<BlockSpec> blocks = {Stem(base_width)};
  for (size_t group = 0; group < form.blocks.size(); ++group) {
    for (int i = 0; i < form.blocks[group]; ++i) {
      const bool narrows = group > 0 && i == 0;
      blocks.push_back(BasicBlock(absl::StrCat("layer", group + 1, ".", i), base_width << group,
                                  /*stride=*/narrows ? 2 : 1, /*project=*/narrows));
    }
  }
  blocks.push_back(Head(options.classes));
  return CustomModel(form.name, std::move(blocks), options.input, options.classes);
}

absl::StatusOr<Model> CustomModel(std::string name, std::vector<BlockSpec> blocks, Shape input,
                                  int64_t classes) {
  Model model;
  model.name = std::move(name);
  model.blocks = std::move(blocks);
  model.input = input;
  model.classes = classes;
  if (model.blocks.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("model ", model.name, " has no blocks"));
  }
  if (classes < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("model ", model.name, ": classes is ", classes, ", want at least 1"));
  }
  RETURN_IF_ERROR(CheckNames(model));
  RETURN_IF_ERROR(FillShapes(&model));
  const Shape want = {1, classes};
  if (model.blocks.back().out != want) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model ", model.name, ": block ", model.blocks.back().name, " gives ",
        model.blocks.back().out.ToString(), ", want ", want.ToString(), " for its classes",
        model.blocks.back().out.rank() > 2 ? " (flatten or pool images first)" : ""));
  }
  return model;
}

}  // namespace thinwire
