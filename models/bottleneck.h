// Learned bottlenecks at cuts: layers that make the message at a cut narrower. The encoder ends the
// block before the cut, the decoder begins the block after it. Both are trained with the model, and
// the cut's codec works on the code between them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/enum_names.h"
#include "base/parameters.h"
#include "models/model.h"
#include "models/partition.h"

namespace thinwire {

// Kinds of bottleneck, written encoder | decoder. N is a layer norm; E and D are linear maps of
// each pixel or position, without bias. B is a branch: an RMS norm, a linear map to `hidden`
// features, GELU and a linear map. I keeps the first features, or appends zeros.
enum class BottleneckKind {
  kNone,
  kLinear,     // E | D: the AE of Bian et al. (MLSys 2024)
  kLayerNorm,  // N E N | D: "bottleneck" of SWARM (Ryabinin et al., ICML 2023)
  kMaxout,     // N maxout N | D: "maxout" of SWARM
  // I + B | I + B: after ResBM (Aboudib et al., arXiv 2604.11947), whose rectangular identities are
  // I. We found no description of the rest of its encoder and decoder; B is ours.
  kResidual,
  // For language models: (x - A) U^T | z U + A. U [width, features] has orthonormal rows; A has a
  // row for each token id. A segment of the model between two cuts has one A for both. U and A are
  // learned, as in MAPL (Janson et al., arXiv 2606.05484), as far as its summaries tell. Each cut
  // has its own U, with a copy after the cut. Both take the sum of their gradients and are trained
  // on the Stiefel manifold (nn/stiefel.h). A is a trained table [vocabulary, rank] times a fixed
  // [rank, features].
  kLearnedSubspace,
  // Subspace Networks (Ramasinghe et al., arXiv 2506.01260): as kLearnedSubspace, but with one
  // fixed U for all cuts and one fixed full table A, which the embedding adds too. All layers that
  // write to the stream between the cuts stay in U's span, so nothing is lost.
  kSubspace,
};

// Returns the names in experiment files: "layer_norm" (base/enum_names.h).
NameTable<BottleneckKind> TableOf(BottleneckKind);

// Parameters of a bottleneck.
struct BottleneckSpec {
  BottleneckKind kind = BottleneckKind::kNone;
  int64_t width = 0;  // all but kMaxout: channels of the code, from 1 to the cut's
  // kMaxout: neighbouring channels of which the greatest is kept; divides the cut's.
  int64_t group = 0;
  int64_t hidden = 0;  // kResidual: features inside both branches; 0: 4 x width
  // kLearnedSubspace: rank of the anchors, 0: width; learning rate of U as a multiple of the
  // optimizer's.
  int64_t anchor_rank = 0;
  double basis_rate = 0.1;
};

// Calls visit(name, field, presence) for each parameter of the kind (base/parameters.h).
template <typename Spec, typename Visit, ForSpec<Spec, BottleneckSpec> = 0>
void VisitParameters(Spec& spec, Visit&& visit) {
  switch (spec.kind) {
    case BottleneckKind::kNone:
      break;
    case BottleneckKind::kLinear:
    case BottleneckKind::kLayerNorm:
      visit("width", spec.width, Presence::kRequired);
      break;
    case BottleneckKind::kResidual:
      visit("width", spec.width, Presence::kRequired);
      visit("hidden", spec.hidden, Presence::kOptional);
      break;
    case BottleneckKind::kLearnedSubspace:
      visit("width", spec.width, Presence::kRequired);
      visit("anchor_rank", spec.anchor_rank, Presence::kOptional);
      visit("basis_rate", spec.basis_rate, Presence::kWritten);
      break;
    case BottleneckKind::kSubspace:
      visit("width", spec.width, Presence::kRequired);
      break;
    case BottleneckKind::kMaxout:
      visit("group", spec.group, Presence::kRequired);
      break;
  }
}

// Returns the cut whose bottleneck has the parameter of that name; empty for a parameter of the
// model itself.
std::string CutOfBottleneck(const std::string& parameter);

// A learned basis, which both sides of a cut hold.
struct LearnedBasis {
  std::string name, copy;  // names of the parameters in the segments before and after the cut
  Shape shape;             // [width, features], of both
};
// Returns the basis at a cut of a model that WithBottlenecks made; nothing if there is none.
std::optional<LearnedBasis> LearnedBasisAt(const Model& model, const Cut& cut);

// Returns `model` with the layers of specs[i] around cuts[i]. The cuts keep their places, and the
// blocks before them now output the code. On images linear maps are 1x1 convolutions, elsewhere
// linear layers; they start Xavier-uniform. Parameters are called bottleneck.CUT.norm, .encode,
// .code_norm and .decode; first maps of branches are .encode_in and .decode_in; tables of anchors
// are .anchor before the cut and .decode_anchor after it. InvalidArgument names the cut, the value
// met and those wanted.
absl::StatusOr<Model> WithBottlenecks(Model model, const std::vector<Cut>& cuts,
                                      const std::vector<BottleneckSpec>& specs);

}  // namespace thinwire
