#include "config/origins.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace thinwire {

void Origins::Add(const std::string& path, const std::string& place, bool is_section) {
  const auto [entry, is_new] = places_.emplace(path, place);
  if (!is_new && !is_section) entry->second = place;
}

void Origins::ForgetElements(const std::string& list) {
  // In the map's order all paths that begin with "LIST[" lie between these two.
  places_.erase(places_.lower_bound(list + "["), places_.lower_bound(list + "]"));
}

std::string Origins::Of(const std::string& refusal) const {
  std::string path = refusal.substr(0, refusal.find(' '));
  while (!path.empty() && (path.back() == ':' || path.back() == ',')) path.pop_back();
  const std::string sentence = refusal.substr(path.size());
  while (!path.empty()) {
    const std::string named = NamedIn(path, sentence);
    if (!named.empty()) return named;
    const auto found = places_.find(path);
    if (found != places_.end()) return found->second;
    const size_t last = path.find_last_of(".[");
    path.resize(last == std::string::npos ? 0 : last);
  }
  return "";
}

// Returns the place of the first field of `section` whose name is a word of the sentence.
std::string Origins::NamedIn(const std::string& section, const std::string& sentence) const {
  for (const auto& word : absl::StrSplit(sentence, absl::ByAnyChar(" :,.;\"()"))) {
    const auto found = places_.find(absl::StrCat(section, ".", word));
    if (!word.empty() && found != places_.end()) return found->second;
  }
  return "";
}

}  // namespace thinwire
