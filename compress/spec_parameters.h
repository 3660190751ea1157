// Parameters of each codec: which belong to it, which of them matter given the others, and their
// defaults. Frames, experiment files, command lines, `thinwire codecs` and ToString() all use this
// one list.
#pragma once

#include "base/parameters.h"
#include "compress/codec_table.h"
#include "compress/spec.h"

namespace thinwire {

// Use of a parameter by a codec.
template <typename T>
struct ParameterUse {
  T fallback;                   // the value if the parameter is left out
  Presence presence;            // see base/parameters.h
  const char* unmet = nullptr;  // what it needs in order to matter: "scope group"; null if it does
};

// Calls visit(name, field, use) for each parameter of the codec `spec.kind`, in the order in which
// people name them, also for those that do not matter to `spec` as it is. `name` is the field's
// name in experiment files and in frames. `visit` may set the field: parameters that depend on it
// come after it.
template <typename Spec, typename Visit, ForSpec<Spec, CodecSpec> = 0>
void VisitAllParameters(Spec& spec, Visit&& visit) {
  constexpr Presence kRequired = Presence::kRequired, kSpelled = Presence::kSpelled;
  constexpr Presence kWritten = Presence::kWritten, kOptional = Presence::kOptional;
  const char* unmet = nullptr;
  const auto show_or = [&](const char* name, auto member, Presence presence, auto fallback) {
    visit(name, spec.*member, ParameterUse<decltype(fallback)>{fallback, presence, unmet});
  };
  const auto show = [&](const char* name, auto member, Presence presence) {
    show_or(name, member, presence, CodecSpec().*member);
  };
  // Calls `shown`, whose parameters matter only if `need` and all conditions around it are met.
  const auto with = [&](bool is_met, const char* need, auto shown) {
    const char* const around = unmet;
    if (unmet == nullptr && !is_met) unmet = need;
    shown();
    unmet = around;
  };
  const auto zero = [&] {
    with(spec.range == Range::kMinMax, "range min_max",
         [&] { show("zero", &CodecSpec::zero, kSpelled); });
  };
  const CodecRow& row = CodecRowOf(spec.kind);
  // A group of elements, where there is one, is the group of values too.
  const bool has_groups = row.has(CodecRow::kGroup);
  const auto is_by_group = [&] {
    return has_groups && spec.indices == Indices::kOwn && spec.scope == Scope::kGroup;
  };
  const auto values = [&] {
    show("values", &CodecSpec::values, kSpelled);
    const bool is_uniform = spec.values == Values::kUniform;
    const bool is_means = spec.values == Values::kMeans;
    const bool is_coded = is_uniform || is_means;
    const char* const coded = "values uniform or means";
    with(is_coded, coded,
         [&] { show_or("bits", &CodecSpec::bits, kSpelled, is_means ? 2u : CodecSpec().bits); });
    with(is_uniform, "values uniform", [&] {
      show("range", &CodecSpec::range, kSpelled);
      show("rounding", &CodecSpec::rounding, kSpelled);
      zero();
    });
    if (is_by_group()) return;
    with(is_coded, has_groups ? "scope group, or values uniform or means" : coded,
         [&] { show("group", &CodecSpec::group, kOptional); });
  };
  if (row.has(CodecRow::kIndices)) show("indices", &CodecSpec::indices, kOptional);
  const bool is_own = spec.indices == Indices::kOwn;
  if (row.has(CodecRow::kStep)) {
    show("rate", &CodecSpec::rate, kOptional);
    with(spec.rate == 0, "no rate", [&] { show("step", &CodecSpec::step, kSpelled); });
  }
  if (row.has(CodecRow::kThreshold)) {
    show("threshold", &CodecSpec::threshold, kRequired);
    show("relative_to", &CodecSpec::relative_to, kWritten);
  }
  if (row.has(CodecRow::kGrid)) {
    show("bits", &CodecSpec::bits, kSpelled);
    show("range", &CodecSpec::range, kSpelled);
  }
  with(is_own, "indices own", [&] {
    if (row.has(CodecRow::kKept)) {
      show("ratio", &CodecSpec::ratio, kOptional);
      show("k", &CodecSpec::k, kOptional);
    }
    if (row.has(CodecRow::kScope)) show_or("scope", &CodecSpec::scope, kSpelled, row.scope);
    if (row.has(CodecRow::kKept)) show("count", &CodecSpec::count, kWritten);
    if (row.has(CodecRow::kPad)) show("pad", &CodecSpec::pad, kWritten);
  });
  if (is_by_group() || (has_groups && !row.has(CodecRow::kValues))) {
    with(is_by_group(), "scope group", [&] { show("group", &CodecSpec::group, kRequired); });
  }
  if (row.has(CodecRow::kUnbiased)) show("unbiased", &CodecSpec::unbiased, kOptional);
  if (row.has(CodecRow::kRounding)) show("rounding", &CodecSpec::rounding, kSpelled);
  if (row.has(CodecRow::kGrid)) zero();
  if (row.has(CodecRow::kReconstruction)) {
    with(!IsUnbiased(spec.rounding),
         "rounding nearest, nearest_nonzero, dead_zone or rate_distortion",
         [&] { show("reconstruction", &CodecSpec::reconstruction, kOptional); });
  }
  if (row.has(CodecRow::kHadamard)) {
    show("rotation", &CodecSpec::rotation, kOptional);
    with(spec.rotation == Rotation::kHadamard, "rotation hadamard",
         [&] { show_or("rotation_block", &CodecSpec::rotation_block, kSpelled, 1024u); });
  }
  if (row.has(CodecRow::kPrincipal)) {
    show("rotation", &CodecSpec::rotation, kOptional);
    with(spec.rotation == Rotation::kPrincipal, "rotation principal",
         [&] { show_or("rotation_every", &CodecSpec::rotation_every, kSpelled, uint64_t{100}); });
  }
  if (row.has(CodecRow::kOutliers)) {
    show("outliers", &CodecSpec::outliers, kOptional);
    show("first_position", &CodecSpec::first_position, kOptional);
  }
  if (row.has(CodecRow::kValues)) values();
  if (row.has(CodecRow::kFormat)) show("format", &CodecSpec::format, kSpelled);
  if (row.has(CodecRow::kBlock)) show_or("block", &CodecSpec::block, kSpelled, 4096u);
  if (row.has(CodecRow::kRank)) {
    show("rank", &CodecSpec::rank, kRequired);
    show("per_sample", &CodecSpec::per_sample, kOptional);
  }
  if (row.has(CodecRow::kPlugin)) show("plugin", &CodecSpec::plugin, kRequired);
  if (row.has(CodecRow::kSupport)) {
    with(is_own, "indices own", [&] { show("support", &CodecSpec::support, kOptional); });
  }
  show_or("lossless", &CodecSpec::lossless, kOptional, row.lossless);
}

// Calls visit(name, field) for the parameters that matter to `spec` as it is. Two specifications of
// one kind that are equal in these are the same codec.
template <typename Spec, typename Visit, ForSpec<Spec, CodecSpec> = 0>
void VisitParameters(Spec& spec, Visit&& visit) {
  VisitAllParameters(spec, [&](const char* name, auto& field, const auto& use) {
    if (use.unmet == nullptr) visit(name, field, use);
  });
}

// Returns the default of `scope` for messages that are sequences of tokens. A wider scope would not
// be causal: what is kept of a token would depend on later ones. `uniform` and `ecsq` with a
// support see no tokens, only the supported entries, and keep the default of all messages.
inline Scope DefaultScopeOfTokens(const CodecSpec& spec) {
  const bool has_no_tokens =
      !CodecRowOf(spec.kind).has_positions && spec.support == Support::kReceivedNonzero;
  return has_no_tokens ? CodecSpec().scope : Scope::kToken;
}

// Parameters of a plug-in that gets none: JSON, of which a CodecSpec has a digest.
inline constexpr char kNoPluginParameters[] = "{}";

}  // namespace thinwire
