// A learned bottleneck at a cut: layers that make what crosses it narrower. The encoder ends the
// block before the cut, the decoder begins the one behind it; both are trained with the rest, and
// whatever codec the cut has works on the code between them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/parameters.h"
#include "models/model.h"
#include "models/partition.h"

namespace thinwire {

// N is a layer norm, E and D are linear maps of each pixel or position without bias; B is a branch:
// an RMS norm, a linear map to `hidden` features, GELU and a linear map. I keeps the first
// features, or adds zeros behind them.
enum class BottleneckKind {
  kNone,
  kLinear,     // E | D: the AE of Bian et al. (MLSys 2024)
  kLayerNorm,  // N E N | D: "bottleneck" of SWARM (Ryabinin et al., ICML 2023)
  kMaxout,     // N maxout N | D: "maxout" there
  // I + B | I + B: after ResBM (Aboudib et al., arXiv 2604.11947), whose rectangular identities I
  // are. What makes up its encoder and decoder we did not find; B is ours.
  kResidual,
  // Language models. U [width, features] has orthonormal rows; A are rows that belong to a token
  // id. (x - A) U^T | z U + A, where a segment of the model between two cuts has one A for both.
  // Learned: MAPL (Janson et al., arXiv 2606.05484), as far as its summaries tell. Each cut has a U
  // of its own, with a copy behind the cut, which both take the sum of their gradients and are
  // trained on the Stiefel manifold (nn/stiefel.h); A is a trained table [vocabulary, rank] times a
  // fixed [rank, features].
  kLearnedSubspace,
  // Subspace Networks (Ramasinghe et al., arXiv 2506.01260): one fixed U for all cuts, one fixed
  // full table A, which the embedding adds too, and all that writes to the stream between them
  // stays in U's span, so that nothing is lost.
  kSubspace,
};

// Names as experiment files spell them: "layer_norm". The inverse gives InvalidArgument with the
// known ones.
const char* Name(BottleneckKind kind);
absl::Status FromName(const std::string& name, BottleneckKind* to);
std::vector<BottleneckKind> AllBottleneckKinds();

struct BottleneckSpec {
  BottleneckKind kind = BottleneckKind::kNone;
  int64_t width = 0;   // all but kMaxout: channels of the code, 1 to the cut's
  int64_t group = 0;   // kMaxout: neighbouring channels, whose greatest is kept; divides the cut's
  int64_t hidden = 0;  // kResidual: features inside both branches; 0: 4 width
  // kLearnedSubspace: the anchors' rank, 0: width; and the rate of U as a multiple of the
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

// The cut whose bottleneck has the parameter of that name; empty for one of the model itself.
std::string CutOfBottleneck(const std::string& parameter);

// A basis that is learned on both sides of a cut.
struct LearnedBasis {
  std::string name, copy;  // of the parameters: in the segment before the cut and behind it
  Shape shape;             // [width, features], of both
};
// That of a cut of a model that WithBottlenecks made; none where it has no such bottleneck.
std::optional<LearnedBasis> LearnedBasisAt(const Model& model, const Cut& cut);

// `model` with the layers of specs[i] around cuts[i]; the cuts stay where they are, and the blocks
// before them give the code. On images linear maps are 1x1 convolutions, elsewhere linear layers;
// they start Xavier-uniform. Parameters are called bottleneck.CUT.norm, .encode, .code_norm and
// .decode; the first maps of branches .encode_in and .decode_in; tables of anchors .anchor before
// the cut and .decode_anchor behind it. InvalidArgument names the cut, the value met and those
// wanted.
absl::StatusOr<Model> WithBottlenecks(Model model, const std::vector<Cut>& cuts,
                                      const std::vector<BottleneckSpec>& specs);

}  // namespace thinwire
