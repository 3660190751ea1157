#include "config/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

// Exception within the parser; it never leaves this file.
struct Refused {
  int line;
  std::string message;
};

// Returns the bytes of the UTF-8 character at `s`. Returns 0 if it is malformed (overlong,
// surrogate, incomplete) or a control character other than tab and newline.
size_t CharacterBytes(const unsigned char* s, size_t left) {
  if (s[0] < 0x80) return s[0] >= 0x20 || s[0] == '\t' || s[0] == '\n' ? 1 : 0;
  const size_t n = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
  if (s[0] < 0xC2 || s[0] > 0xF4 || n > left) return 0;
  for (size_t i = 1; i < n; ++i) {
    if ((s[i] & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xF0 && s[1] < 0x90);
  const bool outside = (s[0] == 0xED && s[1] >= 0xA0) || (s[0] == 0xF4 && s[1] >= 0x90);
  return overlong || outside ? 0 : n;
}

void CheckText(const std::string& text, int line) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  for (size_t i = 0; i < text.size();) {
    const size_t n = CharacterBytes(bytes + i, text.size() - i);
    if (n == 0) throw Refused{line, "a control character or malformed UTF-8"};
    i += n;
  }
}

// Builds the tree from the parser's events. Anchored nodes are kept and copied for each alias;
// copies count against the limits like other nodes.
class TreeBuilder final : public YAML::EventHandler {
 public:
  YamlNode TakeRoot() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    YamlNode node;
    node.line = mark.line + 1;
    Finish(std::move(node), anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const int line = mark.line + 1;
    CheckTag(tag, line);
    CheckText(value, line);
    if (ExpectsKey()) {
      TakeKey(value, line);
      return;
    }
    YamlNode node;
    node.kind = YamlNode::Kind::kScalar;
    node.line = line;
    node.text = value;
    node.quoted = tag == "!";  // yaml-cpp's mark for a quoted scalar; a plain one has "?"
    Finish(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) {
      throw Refused{mark.line + 1, "an alias inside of what it names"};
    }
    YamlNode copy = found->second;
    copy.line = mark.line + 1;
    Finish(std::move(copy), YAML::NullAnchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(YamlNode::Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(YamlNode::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct OpenNode {
    YamlNode node;
    YAML::anchor_t anchor;
    std::map<std::string, int> lines_of_keys;  // kMap
  };

  bool ExpectsKey() const {
    if (open_.empty()) return false;
    const YamlNode& top = open_.back().node;
    return top.kind == YamlNode::Kind::kMap && top.keys.size() == top.items.size();
  }

  static void CheckTag(const std::string& tag, int line) {
    if (!tag.empty() && tag != "?" && tag != "!") {
      throw Refused{line, absl::StrCat("tag \"", tag, "\": tags are not used here")};
    }
  }

  void TakeKey(const std::string& key, int line) {
    const auto [first, is_new] = open_.back().lines_of_keys.emplace(key, line);
    if (!is_new) {
      throw Refused{line,
                    absl::StrCat("\"", key, "\" stands twice, first on line ", first->second)};
    }
    open_.back().node.keys.push_back(key);
    open_.back().node.key_lines.push_back(line);
  }

  void Open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    CheckTag(tag, mark.line + 1);
    if (ExpectsKey())
      throw Refused{mark.line + 1,
                    "a key that is a list or a map, or a bracket that is not closed"};
    if (open_.size() >= kMaxYamlDepth) TooDeep(mark.line + 1);
    OpenNode opened;
    opened.node.kind = kind;
    opened.node.line = mark.line + 1;
    opened.node.depth = 1;
    opened.anchor = anchor;
    open_.push_back(std::move(opened));
  }

  void Close() {
    OpenNode closed = std::move(open_.back());
    open_.pop_back();
    // Its children were counted when they were finished.
    total_nodes_ -= closed.node.nodes - 1;
    Finish(std::move(closed.node), closed.anchor);
  }

  void Finish(YamlNode node, YAML::anchor_t anchor) {
    if (ExpectsKey()) throw Refused{node.line, "a key that is not text"};
    total_nodes_ += node.nodes;
    if (total_nodes_ > kMaxYamlNodes) {
      throw Refused{node.line,
                    absl::StrCat("more than ", kMaxYamlNodes, " values when aliases are expanded")};
    }
    if (static_cast<int>(open_.size()) + node.depth > kMaxYamlDepth) TooDeep(node.line);
    if (anchor != YAML::NullAnchor) anchored_[anchor] = node;
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    YamlNode& parent = open_.back().node;
    parent.nodes += node.nodes;
    parent.depth = std::max(parent.depth, node.depth + 1);
    parent.items.push_back(std::move(node));
  }

  [[noreturn]] static void TooDeep(int line) {
    throw Refused{line, absl::StrCat("more than ", kMaxYamlDepth, " lists and maps in each other")};
  }

  YamlNode root_;
  std::vector<OpenNode> open_;
  std::map<YAML::anchor_t, YamlNode> anchored_;
  size_t total_nodes_ = 0;
};

absl::Status TooLarge(const std::string& source) {
  return absl::InvalidArgumentError(absl::StrCat(source, ": over ", kMaxYamlBytes,
                                                 " bytes, the most that an experiment may have"));
}

bool IsPlain(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '/' ||
           c == '-';
  });
}

std::string InQuotes(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
  }
  return quoted + "\"";
}

// Returns a scalar as YAML. Quoted text stays quoted: "8" is text.
std::string WrittenScalar(const YamlNode& node) {
  if (node.quoted) return InQuotes(node.text);
  const bool is_number = node.text.find_first_not_of("0123456789+-.eE") == std::string::npos &&
                         node.text.find_first_of("0123456789") != std::string::npos;
  return is_number ? node.text : YamlQuoted(node.text);
}

}  // namespace

std::string YamlQuoted(const std::string& text) {
  const bool is_plain = IsPlain(text) && text != "null" && text != "Null" && text != "NULL";
  return is_plain && text[0] != '-' && text[0] != '.' ? text : InQuotes(text);
}

std::string YamlText(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "null";
    case YamlNode::Kind::kScalar:
      return WrittenScalar(node);
    case YamlNode::Kind::kList:
    case YamlNode::Kind::kMap:
      break;
  }
  const bool is_map = node.kind == YamlNode::Kind::kMap;
  std::string text;
  for (size_t i = 0; i < node.items.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", is_map ? YamlQuoted(node.keys[i]) + ": " : "",
                    YamlText(node.items[i]));
  }
  return is_map ? absl::StrCat("{", text, "}") : absl::StrCat("[", text, "]");
}

std::string YamlPlace(const std::string& source, int line) {
  return line > 0 ? absl::StrCat(source, ":", line, ": ") : absl::StrCat(source, ": ");
}

absl::StatusOr<YamlNode> ParseYaml(const std::string& text, const std::string& source) {
  if (text.size() > kMaxYamlBytes) return TooLarge(source);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    TreeBuilder builder;
    parser.HandleNextDocument(builder);
    YamlNode root = builder.TakeRoot();
    TreeBuilder second;
    if (parser.HandleNextDocument(second)) {
      return absl::InvalidArgumentError(absl::StrCat(YamlPlace(source, second.TakeRoot().line),
                                                     "a second document; a file holds one"));
    }
    return root;
  } catch (const Refused& refused) {
    return absl::InvalidArgumentError(
        absl::StrCat(YamlPlace(source, refused.line), refused.message));
  } catch (const YAML::Exception& e) {
    return absl::InvalidArgumentError(
        absl::StrCat(YamlPlace(source, e.mark.line + 1), "not YAML: ", e.msg));
  }
}

absl::StatusOr<std::string> ReadYamlFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxYamlBytes + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad()) {
    return absl::NotFoundError(absl::StrCat(path, ": cannot be read: ", std::strerror(errno)));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMaxYamlBytes) return TooLarge(path);
  return text;
}

}  // namespace thinwire
