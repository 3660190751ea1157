#include "models/bottleneck.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/status.h"
#include "models/zoo.h"

namespace thinwire {
namespace {

using Layers = std::vector<LayerSpec>;

constexpr int64_t kMostHidden = 1 << 20;   // number of features
constexpr double kAnchorDeviation = 0.02;  // of fixed anchors, like that of embeddings
// Beginning of a parameter's name, before the cut, the layer and the parameter.
constexpr char kPrefix[] = "bottleneck.";

constexpr Named<BottleneckKind> kKindNames[] = {
    {BottleneckKind::kNone, "none"},
    {BottleneckKind::kLinear, "linear"},
    {BottleneckKind::kLayerNorm, "layer_norm"},
    {BottleneckKind::kMaxout, "maxout"},
    {BottleneckKind::kResidual, "residual"},
    {BottleneckKind::kLearnedSubspace, "learned_subspace"},
    {BottleneckKind::kSubspace, "subspace"}};

LayerSpec Norm(std::string name) {
  LayerSpec layer = NewLayer(LayerKind::kLayerNorm, std::move(name));
  layer.bias = true;
  return layer;
}

LayerSpec Maxout(int64_t group) {
  LayerSpec layer = NewLayer(LayerKind::kMaxout);
  layer.group = group;
  return layer;
}

LayerSpec Map(std::string name, int64_t out_features, bool image) {
  LayerSpec layer = NewLayer(image ? LayerKind::kConv2d : LayerKind::kLinear, std::move(name));
  layer.out_features = out_features;
  layer.kernel = 1;
  layer.init = ParameterSpec::Init::kXavierUniform;
  return layer;
}

// Returns I + B; `norm` and `map` name its norm and its maps.
LayerSpec Residual(const std::string& norm, const std::string& map, int64_t hidden,
                   int64_t out_features, bool image) {
  LayerSpec identity = NewLayer(LayerKind::kResize);
  identity.out_features = out_features;
  LayerSpec residual = NewLayer(LayerKind::kResidual);
  residual.body = {NewLayer(LayerKind::kRmsNorm, norm), Map(map + "_in", hidden, image),
                   NewLayer(LayerKind::kGelu), Map(map, out_features, image)};
  residual.shortcut = {identity};
  return residual;
}

absl::Status Refused(const char* field, int64_t value, const std::string& wanted) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", value, ", want ", wanted));
}

// Checks the parameters. A layer norm of one feature is constant, so a code that is normed needs
// two.
absl::Status Check(const BottleneckSpec& spec, int64_t channels, bool tokens) {
  const bool wants_tokens =
      spec.kind == BottleneckKind::kSubspace || spec.kind == BottleneckKind::kLearnedSubspace;
  if (wants_tokens && !tokens) {
    return absl::InvalidArgumentError("the model takes no token ids, want a language model");
  }
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
  if (spec.anchor_rank < 0 || spec.anchor_rank > channels) {
    return Refused("anchor_rank", spec.anchor_rank,
                   absl::StrCat("1 to ", channels, ", the channels of the cut"));
  }
  if (!(spec.basis_rate >= 0 && std::isfinite(spec.basis_rate))) {
    return absl::InvalidArgumentError(
        absl::StrCat("basis_rate: ", spec.basis_rate, ", want a finite number, at least 0"));
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
    case BottleneckKind::kLinear:
      return {Map(name + ".encode", spec.width, image)};
    case BottleneckKind::kLayerNorm:
      return {Norm(name + ".norm"), Map(name + ".encode", spec.width, image),
              Norm(name + ".code_norm")};
    case BottleneckKind::kMaxout:
      return {Norm(name + ".norm"), Maxout(spec.group), Norm(name + ".code_norm")};
    case BottleneckKind::kResidual:
      return {Residual(name + ".norm", name + ".encode", HiddenOf(spec), spec.width, image)};
    case BottleneckKind::kNone:
    case BottleneckKind::kLearnedSubspace:
    case BottleneckKind::kSubspace:
      break;
  }
  return {};
}

Layers Decoder(const BottleneckSpec& spec, const std::string& name, int64_t channels, bool image) {
  switch (spec.kind) {
    case BottleneckKind::kLinear:
    case BottleneckKind::kLayerNorm:
    case BottleneckKind::kMaxout:
      return {Map(name + ".decode", channels, image)};
    case BottleneckKind::kResidual:
      return {Residual(name + ".code_norm", name + ".decode", HiddenOf(spec), channels, image)};
    case BottleneckKind::kNone:
    case BottleneckKind::kLearnedSubspace:
    case BottleneckKind::kSubspace:
      break;
  }
  return {};
}

// Adds the layers of both kinds of subspace, which depend on more of the model than their cut.
class Subspaces {
 public:
  Subspaces(const std::vector<Cut>& cuts, const std::vector<BottleneckSpec>& specs, Model* model)
      : cuts_(cuts), specs_(specs), model_(*model) {}

  absl::Status AddAll() {
    bool has_fixed = false;
    for (size_t i = 0; i < cuts_.size(); ++i) has_fixed = has_fixed || IsFixed(i);
    if (has_fixed) {
      RETURN_IF_ERROR(CheckFixed());
      RETURN_IF_ERROR(Constrain());
    }
    for (size_t i = 0; i < cuts_.size(); ++i) {
      if (IsFixed(i) || IsLearned(i)) AddAt(i);
    }
    if (!has_fixed) return absl::OkStatus();
    Layers& first = model_.blocks.front().layers;
    first.insert(first.begin() + 1, Anchor(0, NameOf(0) + ".anchor"));
    return absl::OkStatus();
  }

 private:
  std::string NameOf(size_t cut) const { return absl::StrCat(kPrefix, cuts_[cut].name); }
  bool IsFixed(size_t cut) const { return specs_[cut].kind == BottleneckKind::kSubspace; }
  bool IsLearned(size_t cut) const { return specs_[cut].kind == BottleneckKind::kLearnedSubspace; }

  LayerSpec Anchor(size_t cut, std::string name) const {
    LayerSpec layer = NewLayer(LayerKind::kAnchor, std::move(name));
    layer.vocabulary = model_.blocks.front().layers.front().vocabulary;
    layer.trained = IsLearned(cut);
    layer.rank = specs_[cut].anchor_rank > 0 ? specs_[cut].anchor_rank : specs_[cut].width;
    layer.deviation = kAnchorDeviation;
    return layer;
  }

  LayerSpec Basis(LayerKind kind, size_t cut, std::string name, int64_t out_features) const {
    LayerSpec layer = NewLayer(kind, std::move(name));
    layer.out_features = out_features;
    layer.trained = IsLearned(cut);
    layer.rate = specs_[cut].basis_rate;
    return layer;
  }

  // Adds the layers at one cut. A segment between two cuts has one table, that of the cut before
  // it.
  void AddAt(size_t cut) {
    const std::string name = NameOf(cut), first = NameOf(0);
    Layers& before = model_.blocks[cuts_[cut].block].layers;
    Layers& behind = model_.blocks[cuts_[cut].block + 1].layers;
    const Shape& in = model_.blocks[cuts_[cut].block + 1].in;
    LayerSpec project = Basis(LayerKind::kProject, cut, name + ".encode", specs_[cut].width);
    LayerSpec expand = Basis(LayerKind::kExpand, cut, name + ".decode", in[in.rank() - 1]);
    LayerSpec taken = Anchor(cut, name + ".anchor"), added = Anchor(cut, name + ".decode_anchor");
    taken.subtracts = true;
    if (IsFixed(cut)) {
      taken.name = name + ".code_anchor";
      taken.shares = cut == 0 ? first + ".anchor" : NameOf(cut - 1) + ".decode_anchor";
      taken.through = project.name;
      added.copies = first + ".anchor";
      project.copies = cut == 0 ? "" : first + ".encode";
      expand.copies = first + ".encode";
      before.insert(before.end(), {project, taken});
    } else {
      if (cut > 0 && IsLearned(cut - 1) && added.rank == Anchor(cut - 1, "").rank) {
        taken.shares = NameOf(cut - 1) + ".decode_anchor";
      }
      expand.copies = project.name;
      before.insert(before.end(), {taken, project});
    }
    behind.insert(behind.begin(), {expand, added});
  }

  // Checks that one span reaches from the first cut to the last.
  absl::Status CheckFixed() const {
    for (size_t i = 0; i < cuts_.size(); ++i) {
      if (IsFixed(i) && specs_[i].width == specs_[0].width) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("cut ", cuts_[i].name, ": ", Name(specs_[i].kind), " bottleneck of width ",
                       specs_[i].width, ", want subspace at all cuts or none, of one width"));
    }
    const ParameterSpec head = Parameters(model_.blocks.back()).back();
    if (head.tied_to.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("cut ", cuts_[0].name, ": subspace bottleneck: ", head.name, " is tied to ",
                     head.tied_to, ", which stays in the subspace, want model.tied: false"));
  }

  // Makes all layers that write to the stream before the last cut stay in the span of their
  // segment's basis.
  absl::Status Constrain() {
    size_t cut = 0;
    for (int i = 0; i <= cuts_.back().block; ++i) {
      if (i > cuts_[cut].block) ++cut;
      for (LayerSpec& layer : model_.blocks[i].layers) {
        RETURN_IF_ERROR(ConstrainLayer(model_.blocks[i].name, NameOf(cut) + ".encode", &layer));
      }
    }
    return absl::OkStatus();
  }

  static absl::Status ConstrainLayer(const std::string& block, const std::string& basis,
                                     LayerSpec* layer) {
    LayerSpec* writer = layer;
    const bool is_branch = layer->kind == LayerKind::kResidual && layer->shortcut.empty();
    if (is_branch && !layer->body.empty()) writer = &layer->body.back();
    const bool is_table =
        layer->kind == LayerKind::kEmbedding || layer->kind == LayerKind::kPositionEmbedding;
    if (!is_table && !(is_branch && writer->kind == LayerKind::kLinear)) {
      return absl::InvalidArgumentError(
          absl::StrCat("block ", block, ": subspace bottleneck behind a layer ", Name(writer->kind),
                       " that writes to the stream, want embeddings and ",
                       "branches that end with a linear layer, without dropout"));
    }
    writer->within = basis;
    return absl::OkStatus();
  }

  const std::vector<Cut>& cuts_;
  const std::vector<BottleneckSpec>& specs_;
  Model& model_;
};

}  // namespace

NameTable<BottleneckKind> TableOf(BottleneckKind) { return {"bottleneck", kKindNames}; }

std::string CutOfBottleneck(const std::string& parameter) {
  constexpr size_t kBegin = sizeof(kPrefix) - 1;
  if (parameter.compare(0, kBegin, kPrefix) != 0) return "";
  const size_t end = parameter.rfind('.', parameter.rfind('.') - 1);
  const bool has_cut = end != std::string::npos && end > kBegin;
  return has_cut ? parameter.substr(kBegin, end - kBegin) : "";
}

std::optional<LearnedBasis> LearnedBasisAt(const Model& model, const Cut& cut) {
  const Layers& behind = model.blocks[cut.block + 1].layers;
  const bool is_learned = behind.front().kind == LayerKind::kExpand && behind.front().trained;
  if (!is_learned) return std::nullopt;
  const ParameterSpec copy = Parameters(behind.front()).front();
  return LearnedBasis{copy.tied_to, copy.name, copy.shape};
}

absl::StatusOr<Model> WithBottlenecks(Model model, const std::vector<Cut>& cuts,
                                      const std::vector<BottleneckSpec>& specs) {
  assert(cuts.size() == specs.size());
  for (size_t i = 0; i < cuts.size(); ++i) {
    if (specs[i].kind == BottleneckKind::kNone) continue;
    BlockSpec& before = model.blocks[cuts[i].block];
    BlockSpec& behind = model.blocks[cuts[i].block + 1];
    const int64_t channels = behind.in[behind.in.rank() - 1];
    RETURN_IF_ERROR(
        Annotated(Check(specs[i], channels, model.tokens),
                  absl::StrCat("cut ", cuts[i].name, ": ", Name(specs[i].kind), " bottleneck")));
    const std::string name = absl::StrCat(kPrefix, cuts[i].name);
    const bool image = behind.in.rank() == 4;
    for (LayerSpec& layer : Encoder(specs[i], name, image)) {
      before.layers.push_back(std::move(layer));
    }
    const Layers decoder = Decoder(specs[i], name, channels, image);
    behind.layers.insert(behind.layers.begin(), decoder.begin(), decoder.end());
  }
  RETURN_IF_ERROR(Subspaces(cuts, specs, &model).AddAll());
  // Checks all names together and fills the shapes again.
  return CustomModel(std::move(model.name), std::move(model.blocks), model.input, model.classes);
}

}  // namespace thinwire
