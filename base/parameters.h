// Access to the parameters of a specification, so that command lines, experiment files, frames,
// lists and documents take names and defaults from one place. Each specification has a function
//   template <typename Spec, typename Visit, ForSpec<Spec, ThatSpec> = 0>
//   void VisitParameters(Spec& spec, Visit&& visit);
// which calls visit(name, field, presence) for each parameter that belongs to the kind of `spec`.
// `name` is that of the field in experiment files. A default is the field's value in a new
// specification of that kind.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"

namespace thinwire {

// Selects the overload for `Of` and const `Of`.
template <typename Spec, typename Of>
using ForSpec = std::enable_if_t<std::is_same_v<std::remove_const_t<Spec>, Of>, int>;

// Places where a parameter is written.
enum class Presence : uint8_t {
  kRequired,  // everywhere, as it has no default
  kSpelled,   // in texts and resolved experiments, whatever its value
  kWritten,   // in resolved experiments; in texts if it is not the default
  kOptional,  // only if it is not the default
};

// Returns whether texts leave it out while it has its default.
constexpr bool IsRare(Presence presence) {
  return presence == Presence::kWritten || presence == Presence::kOptional;
}

// Returns whether resolved experiments have it even if it has its default.
constexpr bool IsFilledIn(Presence presence) {
  return presence == Presence::kSpelled || presence == Presence::kWritten;
}

// Returns "0.1", "true", "nearest", as in experiment files. A number reads back to the same value.
template <typename T>
std::string Spelled(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_enum_v<T>) {
    return Name(value);
  } else if constexpr (std::is_same_v<T, double>) {
    char text[32];
    return {text, std::to_chars(text, text + sizeof(text), value, std::chars_format::general).ptr};
  } else {
    return absl::StrCat(value);
  }
}

// Returns the default as lists and documents show it; empty if there is none. An optional number
// that is 0 or less is off, and structured values have no text.
template <typename T>
std::string DefaultText(const T& fallback, Presence presence) {
  constexpr bool kHasWords = std::is_enum_v<T> || std::is_same_v<T, bool>;
  if constexpr (kHasWords || std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    const bool is_off = presence == Presence::kOptional && !kHasWords && fallback <= T{};
    if (presence != Presence::kRequired && !is_off) return Spelled(fallback);
  }
  return "";
}

}  // namespace thinwire
