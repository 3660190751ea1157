// Pieces of which all transformers are made, whatever their family.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/model.h"
#include "models/options.h"

namespace thinwire {

// Deviation from which a transformer's weights start.
inline constexpr double kTransformerDeviation = 0.02;

// Returns InvalidArgument that names the option, its value and the wanted one, unless it is good.
absl::Status CheckOption(const ModelOptions& options, const char* field, int64_t value, bool good,
                         const std::string& want);
// Checks numbers of layers and heads, and widths.
absl::Status CheckSize(const ModelOptions& options);

// Returns a transformer's options with every 0 replaced by the number that it stands for; others as
// they are.
ModelOptions Completed(ModelOptions options);

// Makes the layers of one model, from completed options, which outlive it.
class TransformerLayers {
 public:
  explicit TransformerLayers(const ModelOptions& options)
      : options_(options),
        is_llama_(options.family == ModelFamily::kLlama),
        is_gpt2_(options.family == ModelFamily::kGpt2),
        is_encoder_(!is_llama_ && !is_gpt2_) {}

  static LayerSpec Residual(std::vector<LayerSpec> body);

  LayerSpec Norm(std::string name) const;
  LayerSpec Linear(std::string name, int64_t out_features) const;
  // Makes a linear layer that files store in parts, unless they are fused: queries, keys and
  // values, or gate and up.
  LayerSpec Fused(std::string name, std::vector<FilePart> parts) const;
  LayerSpec Attention(std::string name) const;
  // Makes the norms of the heads of the attention of that name.
  LayerSpec HeadNorm(const std::string& attention) const;
  LayerSpec Gelu() const;
  LayerSpec TokenEmbedding(std::string name) const;
  LayerSpec PositionEmbedding(std::string name, int64_t context) const;
  // Adds a dropout if the model has any.
  void AddDropout(std::string name, std::vector<LayerSpec>* layers) const;

 private:
  const ModelOptions& options_;
  const bool is_llama_, is_gpt2_, is_encoder_;
};

}  // namespace thinwire
