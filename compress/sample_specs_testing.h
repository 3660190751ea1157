// Valid specifications of every kind, made from the table of codecs and the list of parameters:
// tests that go through them take a new codec by themselves.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/algorithm/container.h"
#include "compress/codec_table.h"
#include "compress/spec_parameters.h"

namespace thinwire {

// Returns the values that tests give a numeric parameter. A codec with a required number that is
// not here has no samples.
inline std::vector<double> SampleNumbers(const std::string& name) {
  static const auto* const numbers = new std::map<std::string, std::vector<double>>{
      {"bits", {8, 3}},
      {"block", {64, 7}},
      {"group", {7}},
      {"k", {2}},
      {"outliers", {2}},
      {"rank", {2}},
      {"rate", {3}},
      {"ratio", {0.3, 1}},
      {"rotation_block", {64}},
      {"rotation_every", {1}},
      {"step", {0.25, 2}},
      {"threshold", {0.5, 2}},
  };
  const auto found = numbers->find(name);
  return found == numbers->end() ? std::vector<double>() : found->second;
}

// Every value of an enum, both of a bool, and the samples of a number.
template <typename T>
std::vector<T> SampleValues(const std::string& name) {
  std::vector<T> values;
  if constexpr (std::is_enum_v<T>) {
    for (int i = 0; i <= UINT8_MAX; ++i) {
      const auto value = static_cast<T>(i);
      if (std::string_view(Name(value)) != "unknown") values.push_back(value);
    }
  } else if constexpr (std::is_same_v<T, bool>) {
    values = {false, true};
  } else {
    for (const double value : SampleNumbers(name)) values.push_back(static_cast<T>(value));
  }
  return values;
}

// Returns the names of the parameters that matter.
inline std::set<std::string> Mattering(const CodecSpec& spec) {
  std::set<std::string> names;
  VisitParameters(spec, [&](const char* name, const auto&, const auto&) { names.insert(name); });
  return names;
}

// Gives those parameters that came to matter, all but `known`, a value.
inline void FillIn(const std::set<std::string>& known, CodecSpec* spec) {
  VisitParameters(*spec, [&](const char* name, auto& value, const auto& use) {
    using T = std::decay_t<decltype(value)>;
    if (known.count(name) > 0) return;
    value = use.fallback;
    const std::vector<T> samples = SampleValues<T>(name);
    if (use.presence == Presence::kRequired && !samples.empty()) value = samples.front();
  });
}

template <typename T>
void Set(std::string_view name, T value, CodecSpec* spec) {
  VisitParameters(*spec, [&](const char* other, auto& field, const auto&) {
    if constexpr (std::is_same_v<std::decay_t<decltype(field)>, T>) {
      if (name == other) field = value;
    }
  });
}

// Without parameters that have no say, which frames and texts leave out.
inline CodecSpec Cleaned(const CodecSpec& spec) {
  CodecSpec clean;
  clean.kind = spec.kind;
  VisitParameters(
      spec, [&](const char* name, const auto& value, const auto&) { Set(name, value, &clean); });
  return clean;
}

template <typename T>
CodecSpec With(CodecSpec spec, std::string_view name, T value) {
  const std::set<std::string> known = Mattering(spec);
  Set(name, value, &spec);
  FillIn(known, &spec);
  return Cleaned(spec);
}

// `spec` where it is valid, and what differs from it in one parameter and in what comes with that.
inline std::vector<CodecSpec> Variations(const CodecSpec& spec) {
  std::vector<CodecSpec> all = {spec};
  VisitParameters(spec, [&](const char* name, const auto& value, const auto&) {
    using T = std::decay_t<decltype(value)>;
    for (const T other : SampleValues<T>(name)) {
      if (other != value) all.push_back(With(spec, name, other));
    }
  });
  const auto is_refused = [](const CodecSpec& one) { return !CheckSpec(one).ok(); };
  all.erase(std::remove_if(all.begin(), all.end(), is_refused), all.end());
  return all;
}

// The default and its variations. Where the default is not valid (`topk` wants a ratio, k or shared
// indices), what is valid near it, and the variations of that. None of a plug-in, which wants a
// library.
inline std::vector<CodecSpec> SampleSpecs(const CodecRow& row) {
  CodecSpec spec = DefaultSpec(row.value);
  FillIn({}, &spec);
  std::vector<CodecSpec> samples = Variations(spec);
  if (CheckSpec(spec).ok()) return samples;
  for (const CodecSpec& near : std::vector<CodecSpec>(samples)) {
    for (const CodecSpec& other : Variations(near)) {
      if (absl::c_linear_search(samples, other)) continue;
      samples.push_back(other);
    }
  }
  return samples;
}

inline std::vector<CodecSpec> SampleSpecsOfAll() {
  std::vector<CodecSpec> all;
  for (const CodecRow& row : CodecRows()) {
    const std::vector<CodecSpec> samples = SampleSpecs(row);
    all.insert(all.end(), samples.begin(), samples.end());
  }
  return all;
}

}  // namespace thinwire
