#include "data/example.h"

#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

using Json = nlohmann::json;

// Takes from a line, as it is parsed, what an example has. Nothing else is kept, whatever it is.
class ExampleReader final : public nlohmann::json_sax<Json> {
 public:
  explicit ExampleReader(const ExampleKeys& keys) : keys_(keys) {}

  Example Take() { return std::move(example_); }
  const absl::Status& status() const { return status_; }

  bool null() override { return Other("null"); }
  bool boolean(bool) override { return Other("true or false"); }
  bool number_integer(number_integer_t) override { return Other("a number"); }
  bool number_unsigned(number_unsigned_t) override { return Other("a number"); }
  bool number_float(number_float_t, const string_t&) override { return Other("a number"); }
  bool binary(binary_t&) override { return Other("bytes"); }
  bool string(string_t& text) override {
    std::string* const to = Place();
    if (to == nullptr) return Other("a text");
    *to = std::move(text);
    return true;
  }

  bool start_object(size_t) override {
    const bool is_line = depth_ == 0;
    if (IsMessage()) {
      example_.messages->emplace_back();
      has_role_ = has_content_ = false;
    } else if (!is_line && !Other("a map")) {
      return false;
    }
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    if (!IsMessage() || (has_role_ && has_content_)) return true;
    return Refuse(absl::StrCat(At(), " has no ", has_role_ ? "content" : "role"));
  }
  bool start_array(size_t) override {
    if (depth_ == 1 && key_ == keys_.messages) {
      example_.messages.emplace();
      in_messages_ = true;
    } else if (!Other("a list")) {
      return false;
    }
    ++depth_;
    return true;
  }
  bool end_array() override {
    if (--depth_ == 1) in_messages_ = false;
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ == 1) key_ = name;
    if (depth_ == 3 && in_messages_) message_key_ = name;
    return true;
  }
  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception&) override {
    return Refuse(absl::StrCat("byte ", at, " is no JSON"));
  }

 private:
  bool Refuse(const std::string& what) {
    status_.Update(absl::InvalidArgumentError(what));
    return false;
  }

  // Returns whether what comes now is an element of the list of messages.
  bool IsMessage() const { return in_messages_ && depth_ == 2; }

  std::string At() const {
    return absl::StrCat(keys_.messages, "[", example_.messages->size() - (IsMessage() ? 1 : 0),
                        "]");
  }

  // Returns where the text that comes now belongs; null: nowhere.
  std::string* Place() {
    if (depth_ == 1) {
      for (auto [name, field] :
           {std::pair(&keys_.text, &example_.text), std::pair(&keys_.prompt, &example_.prompt),
            std::pair(&keys_.completion, &example_.completion)}) {
        if (key_ == *name) return &field->emplace();
      }
    }
    if (depth_ != 3 || !in_messages_) return nullptr;
    if (message_key_ == "role") {
      has_role_ = true;
      return &example_.messages->back().role;
    }
    if (message_key_ != "content") return nullptr;
    has_content_ = true;
    return &example_.messages->back().content;
  }

  // Takes a value that no text is wanted of, or refuses it.
  bool Other(const char* what) {
    if (depth_ == 0) return Refuse(absl::StrCat("is ", what, ", want a JSON map"));
    if (IsMessage()) {
      return Refuse(absl::StrCat(keys_.messages, "[", example_.messages->size(), "] is ", what,
                                 ", want a map"));
    }
    if (depth_ == 1 && key_ == keys_.messages) {
      return Refuse(absl::StrCat(keys_.messages, " is ", what, ", want a list"));
    }
    if (Place() == nullptr) return true;
    const std::string field =
        depth_ == 1
            ? key_
            : absl::StrCat(keys_.messages, "[", example_.messages->size() - 1, "].", message_key_);
    return Refuse(absl::StrCat(field, " is ", what, ", want a text"));
  }

  const ExampleKeys& keys_;
  Example example_;
  absl::Status status_;
  int64_t depth_ = 0;  // open maps and lists
  std::string key_, message_key_;
  bool in_messages_ = false, has_role_ = false, has_content_ = false;
};

// Checks that the line is one of the three kinds.
absl::Status CheckKind(const Example& example, const ExampleKeys& keys) {
  if (example.prompt.has_value() != example.completion.has_value()) {
    const auto& [met, missing] = example.prompt ? std::tie(keys.prompt, keys.completion)
                                                : std::tie(keys.completion, keys.prompt);
    return absl::InvalidArgumentError(absl::StrCat("has a ", met, ", but no ", missing));
  }
  const int kinds = static_cast<int>(example.text.has_value()) +
                    static_cast<int>(example.prompt.has_value()) +
                    static_cast<int>(example.messages.has_value());
  if (kinds == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("has ", kinds == 0 ? "none" : "several", " of ",
                                                 keys.text, ", ", keys.prompt, " and ",
                                                 keys.completion, ", and ", keys.messages));
}

}  // namespace

absl::Status CheckExampleKeys(const ExampleKeys& keys) {
  const std::pair<const char*, const std::string&> parts[] = {{"text", keys.text},
                                                              {"prompt", keys.prompt},
                                                              {"completion", keys.completion},
                                                              {"messages", keys.messages}};
  for (const auto& [name, key] : parts) {
    if (key.empty()) return absl::InvalidArgumentError(absl::StrCat(name, ": want a key"));
    for (const auto& [other, same] : parts) {
      if (name == other) break;
      if (key != same) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(other, " and ", name, " are both ", key, ", want different keys"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Example> ParseExample(std::string_view line, const ExampleKeys& keys) {
  ExampleReader reader(keys);
  Json::sax_parse(line.begin(), line.end(), &reader);
  RETURN_IF_ERROR(reader.status());
  Example example = reader.Take();
  RETURN_IF_ERROR(CheckKind(example, keys));
  return example;
}

}  // namespace thinwire
