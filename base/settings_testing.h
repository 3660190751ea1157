// Chooses how many settings a test repeats the same code in.
#pragma once

#include <initializer_list>
#include <vector>

namespace thinwire {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

// Returns all settings of a test whose numbers must be equal in each, or the last, the largest,
// with a sanitizer: it looks at the code that runs, which is the same in all of them.
template <typename T>
std::vector<T> Settings(std::initializer_list<T> settings) {
  if (kSanitized) return {*(settings.end() - 1)};
  return settings;
}

}  // namespace thinwire
