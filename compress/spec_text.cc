#include "compress/spec_text.h"

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/annotated.h"
#include "base/status.h"
#include "base/text.h"
#include "compress/spec_parameters.h"

namespace thinwire {
namespace {

using Parameters = std::vector<std::pair<std::string, std::string>>;

// Splits "a=1, b=2" into pairs.
absl::StatusOr<Parameters> Split(absl::string_view text) {
  Parameters parameters;
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> halves =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    const absl::string_view name = absl::StripAsciiWhitespace(halves.first);
    if (!absl::StrContains(part, '=') || name.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("met \"", part, "\", want name=value"));
    }
    for (const auto& [earlier, value] : parameters) {
      if (earlier == name) {
        return absl::InvalidArgumentError(absl::StrCat("parameter \"", name, "\" comes twice"));
      }
    }
    parameters.emplace_back(name, absl::StripAsciiWhitespace(halves.second));
  }
  return parameters;
}

template <typename T>
absl::Status Parse(const std::string& text, T* to) {
  if constexpr (std::is_enum_v<T>) {
    return FromName(text, to);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (absl::SimpleAtob(text, to)) return absl::OkStatus();
  } else if constexpr (std::is_same_v<T, double>) {
    if (absl::SimpleAtod(text, to)) return absl::OkStatus();
  } else {
    if (absl::SimpleAtoi(text, to)) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "met \"", text, "\", want a ", std::is_same_v<T, bool> ? "true or false" : "number"));
}

// Reads the parameter from `given` if it is there.
template <typename T>
absl::Status Take(const char* name, Parameters* given, T* to) {
  for (auto it = given->begin(); it != given->end(); ++it) {
    if (it->first != name) continue;
    const absl::Status status = Parse(it->second, to);
    given->erase(it);
    return Annotated(status, name);
  }
  return absl::OkStatus();
}

absl::Status Fill(Parameters given, CodecSpec* spec) {
  absl::Status status;
  std::vector<std::string> known;
  VisitParameters(*spec, [&](const char* name, auto& value, const auto& use) {
    value = use.fallback;
    status.Update(Take(name, &given, &value));
    known.push_back(name);
  });
  RETURN_IF_ERROR(status);
  if (given.empty()) return CheckSpec(*spec);
  return absl::InvalidArgumentError(
      absl::StrCat("unknown parameter \"", given[0].first, "\", nearest is \"",
                   NearestName(given[0].first, known), "\" (", Name(spec->kind), " takes ",
                   absl::StrJoin(known, ", "), ")"));
}

}  // namespace

absl::StatusOr<CodecSpec> ParseCodec(const std::string& text) {
  absl::string_view name = absl::StripAsciiWhitespace(text), inside;
  const size_t open = name.find('(');
  if (open != absl::string_view::npos) {
    inside = name.substr(open + 1);
    name = absl::StripAsciiWhitespace(name.substr(0, open));
    if (!absl::ConsumeSuffix(&inside, ")")) {
      return absl::InvalidArgumentError(absl::StrCat(text, ": want a ) at the end"));
    }
  }
  CodecSpec spec;
  RETURN_IF_ERROR(FromName(std::string(name), &spec.kind));
  ASSIGN_OR_RETURN(Parameters given, Annotated(Split(inside), text));
  RETURN_IF_ERROR(Annotated(Fill(std::move(given), &spec), text));
  return spec;
}

}  // namespace thinwire
