#include "models/encoder.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/enum_names.h"
#include "base/status.h"
#include "models/transformer_layers.h"

namespace thinwire {
namespace {

constexpr Named<BertHead> kHeadNames[] = {{BertHead::kMasked, "masked"},
                                          {BertHead::kClasses, "classes"}};
constexpr char kWords[] = "bert.embeddings.word_embeddings";

ModelOptions Base(ModelFamily family, const char* name) {
  ModelOptions options;
  options.family = family;
  options.name = name;
  options.layers = options.heads = 12;
  options.width = 768;
  options.epsilon = 1e-12;
  return options;
}

absl::Status CheckBert(const ModelOptions& options) {
  const bool counts_ids = options.head == BertHead::kClasses
                              ? options.vocabulary > 0
                              : options.vocabulary == options.classes;
  RETURN_IF_ERROR(CheckOption(options, "vocabulary", options.vocabulary, counts_ids,
                              options.head == BertHead::kClasses
                                  ? "the number of the data's token ids, with head classes"
                                  : absl::StrCat("the ", options.classes, " classes")));
  RETURN_IF_ERROR(
      CheckOption(options, "pad", options.pad, options.pad < options.vocabulary,
                  absl::StrCat("one of the vocabulary's ", options.vocabulary, " token ids")));
  return CheckOption(options, "separator", options.separator,
                     options.separator < options.vocabulary,
                     absl::StrCat("one of the vocabulary's ", options.vocabulary, " token ids"));
}

absl::Status CheckPatch(const ModelOptions& options) {
  RETURN_IF_ERROR(CheckOption(options, "patch", options.patch, options.patch >= 1, "at least 1"));
  if (options.input.rank() != 4) return absl::OkStatus();
  const bool divides =
      options.input[1] % options.patch == 0 && options.input[2] % options.patch == 0;
  return CheckOption(options, "patch", options.patch, divides,
                     absl::StrCat("a divisor of the image's sides, ", options.input[1], " and ",
                                  options.input[2], " pixels"));
}

// Makes the layers of one model, from completed options.
class EncoderModel : private TransformerLayers {
 public:
  explicit EncoderModel(const ModelOptions& options)
      : TransformerLayers(options),
        options_(options),
        is_vit_(options.family == ModelFamily::kVit) {}

  std::vector<BlockSpec> Blocks() const {
    std::vector<BlockSpec> blocks = {is_vit_ ? Patches() : Words()};
    for (int64_t i = 0; i < options_.layers; ++i) {
      const std::string name = absl::StrCat("layer.", i);
      blocks.push_back(is_vit_ ? VitBlock(name) : BertBlock(name));
    }
    blocks.push_back({"head", Head(), {}, {}});
    return blocks;
  }

 private:
  BlockSpec Words() const {
    LayerSpec types = NewLayer(LayerKind::kTypeEmbedding, "bert.embeddings.token_type_embeddings");
    types.vocabulary = options_.types;
    types.separator = options_.separator;
    types.deviation = kTransformerDeviation;
    BlockSpec block{"embedding",
                    {TokenEmbedding(kWords),
                     PositionEmbedding("bert.embeddings.position_embeddings", options_.context),
                     std::move(types), Norm("bert.embeddings.LayerNorm")},
                    {},
                    {}};
    AddDropout("bert.embeddings.dropout", &block.layers);
    return block;
  }

  BlockSpec Patches() const {
    LayerSpec patches = NewLayer(LayerKind::kConv2d, "vit.embeddings.patch_embeddings.projection");
    patches.out_features = options_.width;
    patches.kernel = patches.stride = options_.patch;
    patches.bias = true;
    patches.deviation = kTransformerDeviation;
    LayerSpec token = NewLayer(LayerKind::kClassToken, "vit.embeddings.cls_token");
    token.deviation = kTransformerDeviation;
    LayerSpec positions = PositionEmbedding("vit.embeddings.position_embeddings", 0);
    positions.is_bare = true;
    BlockSpec block{"embedding",
                    {std::move(patches), NewLayer(LayerKind::kSequence), std::move(token),
                     std::move(positions)},
                    {},
                    {}};
    AddDropout("vit.embeddings.dropout", &block.layers);
    return block;
  }

  // Returns queries, keys, values, attention and its output; attention's parts are named `at`.
  std::vector<LayerSpec> AttentionBranch(const std::string& block, const std::string& at) const {
    std::vector<LayerSpec> branch = {Fused(at + ".qkv", {{at + ".query", options_.width},
                                                         {at + ".key", options_.width},
                                                         {at + ".value", options_.width}}),
                                     Attention(at),
                                     Linear(block + ".attention.output.dense", options_.width)};
    AddDropout(block + ".attention.output.dropout", &branch);
    return branch;
  }

  std::vector<LayerSpec> MlpBranch(const std::string& block) const {
    std::vector<LayerSpec> branch = {Linear(block + ".intermediate.dense", options_.hidden), Gelu(),
                                     Linear(block + ".output.dense", options_.width)};
    AddDropout(block + ".output.dropout", &branch);
    return branch;
  }

  BlockSpec BertBlock(const std::string& name) const {
    const std::string at = "bert.encoder." + name;
    return {name,
            {Residual(AttentionBranch(at, at + ".attention.self")),
             Norm(at + ".attention.output.LayerNorm"), Residual(MlpBranch(at)),
             Norm(at + ".output.LayerNorm")},
            {},
            {}};
  }

  BlockSpec VitBlock(const std::string& name) const {
    const std::string at = "vit.encoder." + name;
    std::vector<LayerSpec> attention = AttentionBranch(at, at + ".attention.attention");
    std::vector<LayerSpec> mlp = MlpBranch(at);
    attention.insert(attention.begin(), Norm(at + ".layernorm_before"));
    mlp.insert(mlp.begin(), Norm(at + ".layernorm_after"));
    return {name, {Residual(std::move(attention)), Residual(std::move(mlp))}, {}, {}};
  }

  std::vector<LayerSpec> Head() const {
    if (is_vit_) {
      return {NewLayer(LayerKind::kFirst), Norm("vit.layernorm"),
              Linear("classifier", options_.classes)};
    }
    return options_.head == BertHead::kMasked ? MaskedHead() : ClassesHead();
  }

  std::vector<LayerSpec> MaskedHead() const {
    LayerSpec decoder = Linear("cls.predictions.decoder", options_.classes);
    decoder.bias_name = "cls.predictions.bias";
    if (options_.tied) decoder.tied_to = kWords;
    return {Linear("cls.predictions.transform.dense", options_.width), Gelu(),
            Norm("cls.predictions.transform.LayerNorm"), std::move(decoder)};
  }

  std::vector<LayerSpec> ClassesHead() const {
    std::vector<LayerSpec> head = {NewLayer(LayerKind::kFirst),
                                   Linear("bert.pooler.dense", options_.width),
                                   NewLayer(LayerKind::kTanh)};
    AddDropout("dropout", &head);
    head.push_back(Linear("classifier", options_.classes));
    return head;
  }

  const ModelOptions& options_;
  const bool is_vit_;
};

}  // namespace

NameTable<BertHead> TableOf(BertHead) { return {"head", kHeadNames}; }

std::vector<ModelOptions> KnownEncoders() {
  ModelOptions bert = Base(ModelFamily::kBert, "bert");
  bert.tied = true;
  return {std::move(bert), Base(ModelFamily::kVit, "vit")};
}

std::string HeadOf(const Model& model, const std::string& tensor) {
  if (model.name != "bert" && model.name != "vit") return "";
  absl::string_view name = tensor;
  if (!absl::ConsumePrefix(&name, "bert.")) absl::ConsumePrefix(&name, "vit.");
  for (const char* head : {"pooler", "classifier", "cls.predictions", "cls.seq_relationship"}) {
    if (absl::StartsWith(name, absl::StrCat(head, "."))) return head;
  }
  return "";
}

absl::StatusOr<std::vector<BlockSpec>> EncoderBlocks(const ModelOptions& options) {
  RETURN_IF_ERROR(CheckSize(options));
  const ModelOptions completed = Completed(options);
  RETURN_IF_ERROR(options.family == ModelFamily::kVit ? CheckPatch(completed)
                                                      : CheckBert(completed));
  return EncoderModel(completed).Blocks();
}

}  // namespace thinwire
