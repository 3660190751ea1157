#include "stage_server/replicas/local_replicas.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/status.h"

namespace thinwire {

std::vector<OptimizerState> StatesOf(const std::vector<Optimizer*>& optimizers) {
  std::vector<OptimizerState> all;
  for (const Optimizer* optimizer : optimizers) {
    for (OptimizerState& state : optimizer->state()) all.push_back(std::move(state));
  }
  return all;
}

LocalReplicas::LocalReplicas(const ExchangeOptions& options, std::vector<Segment*> segments,
                             std::vector<Optimizer*> inner)
    : options_(options),
      carried_(options.carried()),
      segments_(std::move(segments)),
      inner_(std::move(inner)) {
  for (Segment* segment : segments_) {
    for (const Parameter& parameter : segment->parameters()) {
      const bool is_frozen = parameter.spec.role == ParameterSpec::Role::kFrozen;
      if (parameter.follows || is_frozen) continue;
      const auto fragment = options.fragments.find(parameter.spec.name);
      owned_.push_back(&parameter);
      fragment_of_.push_back(fragment == options.fragments.end() ? 0 : fragment->second);
    }
  }
}

absl::StatusOr<std::unique_ptr<LocalReplicas>> LocalReplicas::New(const ExchangeOptions& options,
                                                                  std::vector<Segment*> segments,
                                                                  std::vector<Optimizer*> inner) {
  std::unique_ptr<LocalReplicas> made(
      new LocalReplicas(options, std::move(segments), std::move(inner)));
  for (const Parameter* parameter : made->owned_) {
    ASSIGN_OR_RETURN(made->shared_.emplace_back(),
                     Tensor::Allocate(options.device, DType::kF32, parameter->value.shape()));
  }
  for (int i = 0; i < made->carried_.size(); ++i) RETURN_IF_ERROR(made->AddOwn());
  for (int fragment = 0; fragment < options.replicas.fragments; ++fragment) {
    std::vector<const Parameter*> trained;
    for (size_t i = 0; i < made->owned_.size(); ++i) {
      const bool is_there = made->fragment_of_[i] == fragment && made->owned_[i]->spec.is_trained();
      if (is_there) trained.push_back(made->owned_[i]);
    }
    // Parameters that a basis constrains are in the first (FragmentsOf).
    const std::vector<Segment*> constrained =
        fragment == 0 ? made->segments_ : std::vector<Segment*>();
    ASSIGN_OR_RETURN(made->outer_.emplace_back(),
                     OuterOptimizer::New(options.replicas.outer, trained, constrained,
                                         options.device, options.ops));
  }
  RETURN_IF_ERROR(made->Share());
  return made;
}

absl::Status LocalReplicas::AddOwn() {
  Own& own = own_.emplace_back();
  if (carried_.size() == 1) {
    // Its values and the shared ones change places, as the segments always have the others.
    own.values = shared_;
    return absl::OkStatus();
  }
  for (const Tensor& shared : shared_) {
    ASSIGN_OR_RETURN(own.values.emplace_back(),
                     Tensor::Allocate(options_.device, DType::kF32, shared.shape()));
  }
  own.inner = StatesOf(inner_);
  for (OptimizerState& state : own.inner) {
    const Tensor here = state.tensor;  // its values at the begin are everybody's
    ASSIGN_OR_RETURN(state.tensor, Tensor::Allocate(here.device(), DType::kF32, here.shape()));
    RETURN_IF_ERROR(Copy(here, state.tensor));
  }
  return absl::OkStatus();
}

absl::Status LocalReplicas::Copy(const Tensor& from, const Tensor& to) const {
  if (from.device() != options_.device) {  // what an optimizer keeps on the host of the device
    std::memcpy(to.data(), from.data(), from.bytes());
    return absl::OkStatus();
  }
  return ToStatus(options_.ops->Convert(from.view(), to.view()));
}

absl::Status LocalReplicas::Load(int replica, uint64_t step) {
  for (Optimizer* optimizer : inner_) optimizer->set_steps(static_cast<int64_t>(step) - 1);
  RETURN_IF_ERROR(SwitchTo(replica));
  in_round_ = true;
  return absl::OkStatus();
}

absl::Status LocalReplicas::LoadShared() { return SwitchTo(kShared); }

absl::Status LocalReplicas::SwitchTo(int replica) {
  if (loaded_ == replica) return absl::OkStatus();
  if (in_round_) RETURN_IF_ERROR(SwitchValues(replica));  // else all have the shared ones
  if (own_.size() > 1) RETURN_IF_ERROR(SwitchInner(replica));
  loaded_ = replica;
  return absl::OkStatus();
}

absl::Status LocalReplicas::SwitchInner(int replica) {
  const std::vector<OptimizerState> here = StatesOf(inner_);
  for (size_t i = 0; i < here.size(); ++i) {
    if (loaded_ != kShared) RETURN_IF_ERROR(Copy(here[i].tensor, OwnOf(loaded_).inner[i].tensor));
    if (replica != kShared) RETURN_IF_ERROR(Copy(OwnOf(replica).inner[i].tensor, here[i].tensor));
  }
  return absl::OkStatus();
}

absl::Status LocalReplicas::SwitchValues(int replica) {
  const std::vector<Tensor>&memory = ValuesOf(loaded_), &wanted = ValuesOf(replica);
  for (size_t i = 0; i < owned_.size(); ++i) {
    const Tensor& values = owned_[i]->value;
    if (own_.size() == 1) {
      RETURN_IF_ERROR(Swap(values, wanted[i]));
      continue;
    }
    RETURN_IF_ERROR(Copy(values, memory[i]));
    RETURN_IF_ERROR(Copy(wanted[i], values));
  }
  return ParametersChanged();
}

absl::Status LocalReplicas::Swap(const Tensor& values, const Tensor& memory) {
  ASSIGN_OR_RETURN(const Tensor spare, spare_.Get(options_.device, DType::kF32, values.shape()));
  RETURN_IF_ERROR(Copy(values, spare));
  RETURN_IF_ERROR(Copy(memory, values));
  return Copy(spare, memory);
}

absl::Status LocalReplicas::ParametersChanged() const {
  for (Segment* segment : segments_) RETURN_IF_ERROR(segment->ParametersChanged());
  return absl::OkStatus();
}

absl::Status LocalReplicas::LoadDifference(int fragment, int replica) {
  const Own& own = OwnOf(replica);
  for (size_t i = 0; i < owned_.size(); ++i) {
    const Parameter& parameter = *owned_[i];
    if (fragment_of_[i] != fragment) continue;
    if (parameter.spec.is_trained()) {
      RETURN_IF_ERROR(ToStatus(
          options_.ops->Combine({1, Floats(parameter.value), -1, Floats(own.values[i]),
                                 Floats(parameter.gradient), parameter.value.elements()})));
    } else {
      RETURN_IF_ERROR(Copy(own.values[i], parameter.value));
    }
  }
  ASSIGN_OR_RETURN(const double difference, Norm(fragment, /*of_gradients=*/true));
  ASSIGN_OR_RETURN(const double shared, Norm(fragment, /*of_gradients=*/false));
  if (shared > 0) drift_sum_ += difference / shared;
  return absl::OkStatus();
}

absl::StatusOr<double> LocalReplicas::Norm(int fragment, bool of_gradients) const {
  std::vector<FloatRange> ranges;
  for (size_t i = 0; i < owned_.size(); ++i) {
    if (!owned_[i]->spec.is_trained() || fragment_of_[i] != fragment) continue;
    const Tensor& values = of_gradients ? owned_[i]->gradient : owned_[i]->value;
    ranges.push_back({Floats(values), values.elements()});
  }
  std::vector<double> sums(ranges.size());
  RETURN_IF_ERROR(ToStatus(options_.ops->SumsOfSquares(
      ranges.data(), static_cast<int64_t>(ranges.size()), sums.data())));
  return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
}

absl::Status LocalReplicas::Update(int fragment) {
  drift_ = std::exchange(drift_sum_, 0) / static_cast<double>(own_.size());
  RETURN_IF_ERROR(outer_[fragment]->Step(options_.replicas.count));
  return ParametersChanged();
}

absl::Status LocalReplicas::Take(const std::vector<int>& fragments, double mix) {
  const auto own_share = static_cast<float>(mix), shared_share = static_cast<float>(1 - mix);
  for (size_t i = 0; i < owned_.size(); ++i) {
    if (std::count(fragments.begin(), fragments.end(), fragment_of_[i]) == 0) continue;
    if (mix == 0) {
      RETURN_IF_ERROR(ShareOne(i));
      continue;
    }
    const Tensor& shared = owned_[i]->value;
    for (const Own& own : own_) {
      float* const values = Floats(own.values[i]);
      RETURN_IF_ERROR(ToStatus(options_.ops->Combine(
          {shared_share, Floats(shared), own_share, values, values, shared.elements()})));
    }
  }
  const bool takes_all = mix == 0 && fragments.size() == outer_.size();
  if (takes_all) in_round_ = false;
  return absl::OkStatus();
}

absl::Status LocalReplicas::ShareOne(size_t i) const {
  const Tensor& values = owned_[i]->value;
  for (const Own& own : own_) RETURN_IF_ERROR(Copy(values, own.values[i]));
  return own_.size() == 1 ? absl::OkStatus() : Copy(values, shared_[i]);
}

absl::Status LocalReplicas::Share() {
  for (size_t i = 0; i < owned_.size(); ++i) RETURN_IF_ERROR(ShareOne(i));
  loaded_ = kShared;
  in_round_ = false;
  return ParametersChanged();
}

std::vector<Parameter> LocalReplicas::Values(int replica) const {
  const Own& own = OwnOf(replica);
  std::vector<Parameter> all;
  const auto value_of = [&](const Parameter& parameter) {
    const std::string& name = parameter.follows ? parameter.spec.tied_to : parameter.spec.name;
    const auto found = std::find_if(owned_.begin(), owned_.end(),
                                    [&](const Parameter* one) { return one->spec.name == name; });
    // Frozen parameters are the same at all replicas.
    return found == owned_.end() ? parameter.value : own.values[found - owned_.begin()];
  };
  for (Segment* segment : segments_) {
    for (const Parameter& one : segment->parameters()) {
      all.push_back({one.spec, value_of(one), {}});
      all.back().codes = one.codes;
      all.back().scales = one.scales;
    }
  }
  return all;
}

std::vector<OptimizerState> LocalReplicas::Inner(int replica) const {
  return own_.size() == 1 ? StatesOf(inner_) : OwnOf(replica).inner;
}

std::vector<OptimizerState> LocalReplicas::Outer() const {
  std::vector<OptimizerState> all;
  for (const auto& outer : outer_) {
    for (OptimizerState& state : outer->state()) all.push_back(std::move(state));
  }
  return all;
}

}  // namespace thinwire
