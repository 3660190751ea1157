// YAML text as a tree with line numbers. The text is untrusted: its size, its nesting and the
// expansion of aliases are limited, so no file can make us allocate more than a few megabytes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace thinwire {

inline constexpr size_t kMaxYamlBytes = 1 << 20;
inline constexpr int kMaxYamlDepth = 64;          // depth of nested lists and maps
inline constexpr size_t kMaxYamlNodes = 100'000;  // after aliases are expanded

// A node of the tree, with all nodes below it.
struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  int line = 0;                   // from 1; 0: not from a file
  std::string text;               // kScalar: without quotes; valid UTF-8 without control characters
  bool quoted = false;            // kScalar: true for "8", which is text; 8 may be a number
  std::vector<std::string> keys;  // kMap: unique
  std::vector<int> key_lines;     // kMap: line of each key
  std::vector<YamlNode> items;    // kList: elements; kMap: the values of `keys`
  // Number of nodes of this tree, and depth of its nested lists and maps.
  size_t nodes = 1;
  int depth = 0;
};

// Parses one document; returns kNull for a text without any. InvalidArgument names `source`, the
// line and the fault: a syntax error, a repeated key, a second document, a tag, or one of the
// limits above.
absl::StatusOr<YamlNode> ParseYaml(const std::string& text, const std::string& source);

// Returns the text of a file. NotFound or InvalidArgument (over kMaxYamlBytes) names the file.
absl::StatusOr<std::string> ReadYamlFile(const std::string& path);

// Returns a scalar with this text. It is unquoted if every YAML reader takes it for text, or if
// only a text field can stand there.
std::string YamlQuoted(const std::string& text);

// Returns `node` on one line, "{codec: topk, ratio: 0.1}". ParseYaml makes an equal tree of it,
// except for lines.
std::string YamlText(const YamlNode& node);

// Returns "FILE:LINE: ", or "FILE: " for line 0.
std::string YamlPlace(const std::string& source, int line);

}  // namespace thinwire
