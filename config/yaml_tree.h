// YAML text as a tree that remembers its lines. The text may be anything: size, nesting and what
// aliases expand to are bounded, so that no file makes us allocate more than a few megabytes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace thinwire {

inline constexpr size_t kMaxYamlBytes = 1 << 20;
inline constexpr int kMaxYamlDepth = 64;          // levels of lists and maps in each other
inline constexpr size_t kMaxYamlNodes = 100'000;  // after aliases are expanded

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  int line = 0;                   // from 1; 0: not from a file
  std::string text;               // kScalar: without quotes; valid UTF-8 without control characters
  bool quoted = false;            // kScalar: "8" is text, 8 may be a number
  std::vector<std::string> keys;  // kMap: unique
  std::vector<int> key_lines;     // kMap: the lines of `keys`
  std::vector<YamlNode> items;    // kList: elements; kMap: the values of `keys`
  // All nodes of this tree, and its levels of lists and maps.
  size_t nodes = 1;
  int depth = 0;
};

// One document; kNull for a text without any. InvalidArgument names `source`, the line and what is
// wrong: syntax, a key that stands twice, a second document, a tag, one of the limits above.
absl::StatusOr<YamlNode> ParseYaml(const std::string& text, const std::string& source);

// The text of a file. NotFound or InvalidArgument (over kMaxYamlBytes) names the file.
absl::StatusOr<std::string> ReadYamlFile(const std::string& path);

// A scalar of that text: plain where every YAML reader takes it for text, or where only a text
// field can stand.
std::string YamlQuoted(const std::string& text);

// `node` on one line, which ParseYaml makes an equal tree of, but for lines: "{codec: topk, ratio:
// 0.1}".
std::string YamlText(const YamlNode& node);

// "FILE:LINE: ", or "FILE: " for line 0.
std::string YamlPlace(const std::string& source, int line);

}  // namespace thinwire
