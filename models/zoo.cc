#include "models/zoo.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/annotated.h"
#include "base/status.h"
#include "base/text.h"
#include "models/encoder.h"
#include "models/resnet.h"
#include "models/shapes.h"
#include "models/transformer.h"

namespace thinwire {
namespace {

absl::Status CheckLayerNames(const std::vector<LayerSpec>& layers, std::set<std::string>* seen) {
  for (const LayerSpec& layer : layers) {
    if (HasName(layer.kind)) {
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
    RETURN_IF_ERROR(
        Annotated(CheckLayerNames(block.layers, &layers), absl::StrCat("block ", block.name)));
  }
  return absl::OkStatus();
}

// Checks that the embedding has a row for each class: the data's token ids are the classes.
absl::Status CheckVocabulary(const Model& model) {
  if (!model.tokens) return absl::OkStatus();
  const LayerSpec& embedding = model.blocks.front().layers.front();
  if (embedding.vocabulary >= model.classes || !model.is_language()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(embedding.name, ": vocabulary is ",
                                                 embedding.vocabulary, ", want at least the ",
                                                 model.classes, " classes"));
}

// Ties a layer's weight to the embedding; both copies start like the embedding.
absl::Status TieLayer(const Model& model, bool is_in_last_block, LayerSpec* layer) {
  if (layer->tied_to.empty()) return absl::OkStatus();
  const auto refused = [&](const std::string& why) {
    return absl::InvalidArgumentError(
        absl::StrCat(layer->name, ": tied_to is ", layer->tied_to, ", ", why));
  };
  const LayerSpec& embedding = model.blocks.front().layers.front();
  if (!model.tokens || embedding.name != layer->tied_to) {
    return refused(model.tokens ? absl::StrCat("want ", embedding.name, ", the model's embedding")
                                : "but the model has no embedding");
  }
  if (!is_in_last_block) return refused("which only a layer of the last block may be");
  if (layer->out_features != embedding.vocabulary || layer->in_features != embedding.out_features) {
    return refused(absl::StrCat("whose weight is [", embedding.vocabulary, ", ",
                                embedding.out_features, "], want [", layer->out_features, ", ",
                                layer->in_features, "]"));
  }
  layer->deviation = embedding.deviation;
  return absl::OkStatus();
}

// Ties all layers that ask for it; at most one may copy the embedding's weight.
absl::Status TieLayers(const Model& model, bool is_last_block, std::vector<LayerSpec>* layers,
                       std::string* tied) {
  for (LayerSpec& layer : *layers) {
    RETURN_IF_ERROR(TieLayer(model, is_last_block, &layer));
    if (!layer.tied_to.empty() && !tied->empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(*tied, " and ", layer.name, " are both tied_to ", layer.tied_to));
    }
    if (!layer.tied_to.empty()) *tied = layer.name;
    RETURN_IF_ERROR(TieLayers(model, is_last_block, &layer.body, tied));
    RETURN_IF_ERROR(TieLayers(model, is_last_block, &layer.shortcut, tied));
  }
  return absl::OkStatus();
}

// Marks the layer that takes the model's input and the one that makes its logits. Where layers were
// put in or divided since, the marks stay.
void MarkEnds(Model* model) {
  std::vector<LayerSpec*> weighted;
  bool is_marked = false;
  for (BlockSpec& block : model->blocks) {
    ForEachLayer(block.layers, [&](LayerSpec& layer) {
      const bool has_weight = layer.kind == LayerKind::kConv2d ||
                              layer.kind == LayerKind::kLinear ||
                              layer.kind == LayerKind::kEmbedding;
      if (has_weight) weighted.push_back(&layer);
      is_marked = is_marked || layer.is_end;
    });
  }
  if (weighted.empty() || is_marked) return;
  weighted.front()->is_end = weighted.back()->is_end = true;
}

absl::Status CheckEnd(const Model& model) {
  const Shape of_sample = {1, model.classes};
  const Shape want = model.tokens ? Shape{1, model.input[1], model.classes} : of_sample;
  const Shape& out = model.blocks.back().out;
  if (out == want || out == of_sample) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("model ", model.name, ": block ", model.blocks.back().name, " gives ",
                   out.ToString(), ", want ", want.ToString(), " for its classes",
                   out.rank() == 4 ? " (flatten or pool images first)" : ""));
}

absl::StatusOr<std::vector<BlockSpec>> BlocksOf(const ModelOptions& options) {
  switch (options.family) {
    case ModelFamily::kResNet:
      return ResNetBlocks(options);
    case ModelFamily::kGpt2:
    case ModelFamily::kLlama:
      return TransformerBlocks(options);
    case ModelFamily::kBert:
    case ModelFamily::kVit:
      break;
  }
  return EncoderBlocks(options);
}

}  // namespace

std::vector<ModelOptions> KnownModels() {
  std::vector<ModelOptions> known = KnownResNets();
  for (ModelOptions& options : KnownTransformers()) known.push_back(std::move(options));
  for (ModelOptions& options : KnownEncoders()) known.push_back(std::move(options));
  return known;
}

absl::StatusOr<ModelOptions> OptionsOf(const std::string& name) {
  std::vector<std::string> names;
  for (ModelOptions& known : KnownModels()) {
    if (known.name == name) return std::move(known);
    names.push_back(known.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown model '", name, "': did you mean ",
                                                 NearestName(name, names), "? There are ",
                                                 absl::StrJoin(names, ", ")));
}

absl::StatusOr<Model> NamedModel(const ModelOptions& options) {
  RETURN_IF_ERROR(OptionsOf(options.name).status());
  ASSIGN_OR_RETURN(std::vector<BlockSpec> blocks, BlocksOf(options));
  return CustomModel(options.name, std::move(blocks), options.input, options.classes);
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
  RETURN_IF_ERROR(CheckVocabulary(model));
  std::string tied;
  for (BlockSpec& block : model.blocks) {
    const bool is_last = &block == &model.blocks.back();
    RETURN_IF_ERROR(TieLayers(model, is_last, &block.layers, &tied));
  }
  RETURN_IF_ERROR(CheckEnd(model));
  MarkEnds(&model);
  return model;
}

}  // namespace thinwire
