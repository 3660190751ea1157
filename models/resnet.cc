#include "models/resnet.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

struct ResNetForm {
  const char* name;
  int64_t default_width;
  std::vector<int> blocks;  // number in each group; each group after the first doubles the width
};

const std::vector<ResNetForm>& ResNetForms() {
  static const auto* const forms = new std::vector<ResNetForm>{
      {"resnet8", 16, {1, 1, 1}},
      {"resnet18", 64, {2, 2, 2, 2}},
      {"resnet20", 16, {3, 3, 3}},
      {"resnet34", 64, {3, 4, 6, 3}},
  };
  return *forms;
}

// FillShapes sets the input features.
LayerSpec Conv(std::string name, int64_t out_features, int64_t kernel, int64_t stride) {
  LayerSpec layer = NewLayer(LayerKind::kConv2d, std::move(name));
  layer.out_features = out_features;
  layer.kernel = kernel;
  layer.stride = stride;
  layer.padding = kernel / 2;
  return layer;
}

// Returns two 3x3 convolutions with a shortcut around them (He et al., CVPR 2016, figure 2).
BlockSpec BasicBlock(const std::string& name, int64_t width, int64_t stride, bool project) {
  LayerSpec residual = NewLayer(LayerKind::kResidual);
  residual.body = {Conv(name + ".conv1", width, 3, stride),
                   NewLayer(LayerKind::kBatchNorm, name + ".bn1"), NewLayer(LayerKind::kReLU),
                   Conv(name + ".conv2", width, 3, 1),
                   NewLayer(LayerKind::kBatchNorm, name + ".bn2")};
  if (project) {
    residual.shortcut = {Conv(name + ".downsample.0", width, 1, stride),
                         NewLayer(LayerKind::kBatchNorm, name + ".downsample.1")};
  }
  BlockSpec block;
  block.name = name;
  block.layers = {std::move(residual), NewLayer(LayerKind::kReLU)};
  return block;
}

BlockSpec Stem(int64_t width) {
  BlockSpec block;
  block.name = "stem";
  block.layers = {Conv("conv1", width, 3, 1), NewLayer(LayerKind::kBatchNorm, "bn1"),
                  NewLayer(LayerKind::kReLU)};
  return block;
}

BlockSpec Head(int64_t classes) {
  LayerSpec fc = NewLayer(LayerKind::kLinear, "fc");
  fc.out_features = classes;
  fc.bias = true;
  BlockSpec block;
  block.name = "head";
  block.layers = {NewLayer(LayerKind::kGlobalAvgPool), std::move(fc)};
  return block;
}

}  // namespace

std::vector<ModelOptions> KnownResNets() {
  std::vector<ModelOptions> known;
  for (const ResNetForm& form : ResNetForms()) {
    ModelOptions options;
    options.family = ModelFamily::kResNet;
    options.name = form.name;
    options.width = form.default_width;
    known.push_back(std::move(options));
  }
  return known;
}

absl::StatusOr<std::vector<BlockSpec>> ResNetBlocks(const ModelOptions& options) {
  const ResNetForm& form =
      *std::find_if(ResNetForms().begin(), ResNetForms().end(),
                    [&](const ResNetForm& each) { return each.name == options.name; });
  constexpr int64_t kMaxWidth = 1 << 16;
  if (options.width < 1 || options.width > kMaxWidth) {
    return absl::InvalidArgumentError(
        absl::StrCat(form.name, ": width is ", options.width, ", want 1 to ", kMaxWidth));
  }
  std::vector<BlockSpec> blocks = {Stem(options.width)};
  for (size_t group = 0; group < form.blocks.size(); ++group) {
    for (int i = 0; i < form.blocks[group]; ++i) {
      const bool narrows = group > 0 && i == 0;
      blocks.push_back(BasicBlock(absl::StrCat("layer", group + 1, ".", i), options.width << group,
                                  /*stride=*/narrows ? 2 : 1, /*project=*/narrows));
    }
  }
  blocks.push_back(Head(options.classes));
  return blocks;
}

}  // namespace thinwire
