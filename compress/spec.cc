#include "compress/spec.h"

#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compress/codec_table.h"
#include "compress/spec_parameters.h"

namespace thinwire {
namespace {

auto AllFields(const CodecSpec& s) {
  return std::tie(s.kind, s.scope, s.group, s.bits, s.range, s.rounding, s.zero, s.rotation,
                  s.rotation_block, s.rotation_every, s.ratio, s.k, s.count, s.pad, s.unbiased,
                  s.values, s.threshold, s.relative_to, s.indices, s.support, s.rate, s.step,
                  s.reconstruction, s.outliers, s.first_position, s.format, s.block, s.rank,
                  s.per_sample, s.lossless, s.plugin);
}

}  // namespace

bool operator==(const CodecSpec& a, const CodecSpec& b) { return AllFields(a) == AllFields(b); }

std::string CodecSpec::ToString() const {
  std::vector<std::string> parameters;
  VisitParameters(*this, [&](const char* name, const auto& value, const auto& use) {
    if (IsRare(use.presence) && value == use.fallback) return;
    parameters.push_back(absl::StrCat(name, "=", Spelled(value)));
  });
  if (parameters.empty()) return Name(kind);
  return absl::StrCat(Name(kind), "(", absl::StrJoin(parameters, ", "), ")");
}

CodecSpec DefaultSpec(CodecKind kind) {
  CodecSpec spec;
  spec.kind = kind;
  VisitParameters(spec, [](const char*, auto& value, const auto& use) { value = use.fallback; });
  return spec;
}

absl::Status CheckSpec(const CodecSpec& spec) {
  const CodecRow& row = CodecRowOf(spec.kind);
  return row.check == nullptr ? absl::OkStatus() : row.check(spec);
}

bool IsCausal(const CodecSpec& spec, int64_t width) {
  const CodecRow& row = CodecRowOf(spec.kind);
  return row.is_causal != nullptr && row.is_causal(spec, width);
}

}  // namespace thinwire
