// Where each field of an experiment was given, so that a refusal can say it: checks see the
// message, which knows no file and no line.
#pragma once

#include <map>
#include <string>

namespace thinwire {

class Origins {
 public:
  // `path`: "compression.activations.ratio", "model.blocks[1].name". `place`: "FILE:LINE: " or
  // "--set PATH=VALUE: ". The last place of a field counts; a section stays where it began.
  void Add(const std::string& path, const std::string& place, bool is_section);

  // Forgets the elements of a list that is replaced.
  void ForgetElements(const std::string& list);

  // The place of the field that a refusal begins with ("optimizer.lr: -1, want ..."), of the field
  // of that section that it names first ("compression.activations: topk: ratio is 1.5, ..."), or
  // else of the nearest section around it that was given. Empty where nothing was.
  std::string Of(const std::string& refusal) const;

 private:
  std::string NamedIn(const std::string& section, const std::string& sentence) const;

  std::map<std::string, std::string> places_;
};

}  // namespace thinwire
