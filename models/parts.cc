#include "models/parts.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "models/zoo.h"

namespace thinwire {
namespace {

bool IsDivisible(LayerKind kind) {
  switch (kind) {
    case LayerKind::kAttention:
    case LayerKind::kGelu:
    case LayerKind::kSwiglu:
    case LayerKind::kReLU:
    case LayerKind::kTanh:
      return true;
    default:
      return false;
  }
}

// Three layers that follow one another, of which parts are made.
struct Branch {
  const LayerSpec &first, &between, &last;
};

class Divider {
 public:
  explicit Divider(int64_t parts) : parts_(parts) {}

  bool has_divided() const { return has_divided_; }

  absl::Status Divide(std::vector<LayerSpec>* layers) {
    for (size_t i = 0; i < layers->size(); ++i) {
      RETURN_IF_ERROR(Divide(&(*layers)[i].body));
      RETURN_IF_ERROR(Divide(&(*layers)[i].shortcut));
      if (!BeginsBranch(*layers, i)) continue;
      ASSIGN_OR_RETURN(LayerSpec sum, SumOf({(*layers)[i], (*layers)[i + 1], (*layers)[i + 2]}));
      (*layers)[i] = std::move(sum);
      layers->erase(layers->begin() + static_cast<std::ptrdiff_t>(i) + 1,
                    layers->begin() + static_cast<std::ptrdiff_t>(i) + 3);
      has_divided_ = true;
    }
    return absl::OkStatus();
  }

 private:
  static bool BeginsBranch(const std::vector<LayerSpec>& layers, size_t i) {
    return i + 2 < layers.size() && layers[i].kind == LayerKind::kLinear &&
           IsDivisible(layers[i + 1].kind) && layers[i + 2].kind == LayerKind::kLinear &&
           layers[i + 2].tied_to.empty();
  }

  absl::Status CheckDivides(const LayerSpec& layer, const char* what, int64_t value) const {
    if (value % parts_ == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("tensor.parts is ", parts_, ": ", layer.name,
                                                   " has ", value, " ", what,
                                                   ", want a multiple of the parts"));
  }

  // Returns the numbers of rows of the first layer that are divided each by itself: queries, keys
  // and values, or gate and up.
  static std::vector<int64_t> GroupsOf(const Branch& branch) {
    const LayerSpec& between = branch.between;
    const int64_t rows = branch.first.out_features;
    if (between.kind == LayerKind::kSwiglu) return {rows / 2, rows / 2};
    if (between.kind != LayerKind::kAttention) return {rows};
    const int64_t of_head = HeadSize(between);
    const int64_t kv_heads = between.kv_heads == 0 ? between.heads : between.kv_heads;
    return {between.heads * of_head, kv_heads * of_head, kv_heads * of_head};
  }

  absl::Status Check(const Branch& branch) const {
    if (branch.between.kind != LayerKind::kAttention) {
      return CheckDivides(branch.last, "hidden features", branch.last.in_features);
    }
    RETURN_IF_ERROR(CheckDivides(branch.between, "heads", branch.between.heads));
    return CheckDivides(branch.between, "heads of keys and values", branch.between.kv_heads);
  }

  std::string NameOf(const LayerSpec& whole, int64_t part) const {
    return whole.name.empty() ? "" : absl::StrCat(whole.name, ".part", part);
  }

  LayerSpec FirstOf(const Branch& branch, int64_t part) const {
    LayerSpec layer = branch.first;
    layer.name = NameOf(layer, part);
    layer.slice.whole = branch.first.name;
    layer.slice.in_features = layer.in_features;
    layer.slice.out_features = layer.out_features;
    layer.slice.columns = {0, layer.in_features};
    int64_t group_begin = 0;
    for (const int64_t rows : GroupsOf(branch)) {
      layer.slice.rows.push_back({group_begin + rows / parts_ * part, rows / parts_});
      group_begin += rows;
    }
    layer.out_features /= parts_;
    return layer;
  }

  LayerSpec BetweenOf(const Branch& branch, int64_t part) const {
    LayerSpec layer = branch.between;
    if (layer.kind != LayerKind::kAttention) return layer;
    layer.name = NameOf(layer, part);
    layer.slice.whole = branch.between.name;
    layer.heads /= parts_;
    layer.kv_heads /= parts_;
    layer.slice.first_head = layer.heads * part;
    return layer;
  }

  LayerSpec LastOf(const Branch& branch, int64_t part) const {
    LayerSpec layer = branch.last;
    layer.name = NameOf(layer, part);
    layer.bias = false;
    layer.slice.whole = branch.last.name;
    layer.slice.in_features = layer.in_features;
    layer.slice.out_features = layer.out_features;
    layer.slice.rows = {{0, layer.out_features}};
    layer.in_features /= parts_;
    layer.slice.columns = {layer.in_features * part, layer.in_features};
    return layer;
  }

  absl::StatusOr<LayerSpec> SumOf(const Branch& branch) const {
    RETURN_IF_ERROR(Check(branch));
    LayerSpec sum = branch.last;
    sum.kind = LayerKind::kSum;
    for (int64_t i = 0; i < parts_; ++i) {
      LayerSpec part = NewLayer(LayerKind::kPart);
      part.part = static_cast<int>(i);
      part.body = {FirstOf(branch, i), BetweenOf(branch, i), LastOf(branch, i)};
      sum.body.push_back(std::move(part));
    }
    return sum;
  }

  const int64_t parts_;
  bool has_divided_ = false;
};

LayerSpec LinearOf(std::string name, int64_t in_features, int64_t out_features) {
  LayerSpec layer = NewLayer(LayerKind::kLinear, std::move(name));
  layer.in_features = in_features;
  layer.out_features = out_features;
  layer.init = ParameterSpec::Init::kXavierUniform;
  return layer;
}

// Puts encoders and a decoder around each sum of these layers.
absl::Status AddCodes(int64_t width, std::vector<LayerSpec>* layers) {
  for (size_t i = 0; i < layers->size(); ++i) {
    LayerSpec& sum = (*layers)[i];
    RETURN_IF_ERROR(AddCodes(width, &sum.body));
    RETURN_IF_ERROR(AddCodes(width, &sum.shortcut));
    if (sum.kind != LayerKind::kSum) continue;
    const int64_t features = sum.out_features;
    if (width < 1 || width >= features) {
      return absl::InvalidArgumentError(absl::StrCat("width is ", width, ", want 1 to ",
                                                     features - 1, ": ", sum.name, " has ",
                                                     features, " features"));
    }
    LayerSpec decoder = LinearOf(absl::StrCat(sum.name, ".decoder"), width, features);
    // The bias is added behind the decoder, and stands in files where it stands without.
    decoder.bias = sum.bias;
    decoder.bias_name = absl::StrCat(sum.name, ".bias");
    sum.bias = false;
    sum.out_features = width;
    for (LayerSpec& part : sum.body) {
      part.body.push_back(
          LinearOf(absl::StrCat(sum.name, ".encoder.part", part.part), features, width));
    }
    layers->insert(layers->begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(decoder));
  }
  return absl::OkStatus();
}

void CollectSums(const std::vector<LayerSpec>& layers, std::vector<const LayerSpec*>* sums) {
  ForEachLayer(layers, [sums](const LayerSpec& layer) {
    if (layer.kind == LayerKind::kSum) sums->push_back(&layer);
  });
}

}  // namespace

absl::StatusOr<Model> DividedIntoParts(Model model, int64_t parts) {
  if (parts == 1) return model;
  Divider divider(parts);
  const size_t last = model.blocks.size() - 1;
  for (size_t i = 0; i < std::max<size_t>(1, last); ++i) {
    RETURN_IF_ERROR(divider.Divide(&model.blocks[i].layers));
  }
  if (!divider.has_divided()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor.parts is ", parts, ": model ", model.name,
                     " has no attention and no MLP to divide, want 1"));
  }
  return CustomModel(std::move(model.name), std::move(model.blocks), model.input, model.classes);
}

absl::StatusOr<Model> WithCodesOfSums(Model model, int64_t width, int first) {
  int with_sums = 0;
  for (BlockSpec& block : model.blocks) {
    if (SumsOf(block).empty() || with_sums++ < first) continue;
    RETURN_IF_ERROR(AddCodes(width, &block.layers));
  }
  return CustomModel(std::move(model.name), std::move(model.blocks), model.input, model.classes);
}

std::string SumOfCode(const Model& model, const std::string& parameter) {
  for (const BlockSpec& block : model.blocks) {
    for (const LayerSpec* const sum : SumsOf(block)) {
      if (absl::StartsWith(parameter, sum->name + ".encoder.part") ||
          parameter == sum->name + ".decoder.weight") {
        return sum->name;
      }
    }
  }
  return "";
}

void KeepParts(int first, int end, std::vector<BlockSpec>* blocks) {
  for (BlockSpec& block : *blocks) {
    ForEachLayer(block.layers, [&](LayerSpec& layer) {
      if (!layer.slices.are_whole()) {
        layer.slices.first = first;
        layer.slices.end = end;
      }
      if (layer.kind != LayerKind::kSum) return;
      const auto is_elsewhere = [&](const LayerSpec& part) {
        return part.part < first || part.part >= end;
      };
      layer.body.erase(std::remove_if(layer.body.begin(), layer.body.end(), is_elsewhere),
                       layer.body.end());
    });
  }
}

std::vector<const LayerSpec*> SumsOf(const BlockSpec& block) {
  std::vector<const LayerSpec*> sums;
  CollectSums(block.layers, &sums);
  return sums;
}

}  // namespace thinwire
