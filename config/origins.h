// Places at which the fields of an experiment were given, for error messages: the checks see the
// message only, which knows no file and no line.
#pragma once

#include <map>
#include <string>

namespace thinwire {

class Origins {
 public:
  // Adds a field. `path` is like "compression.activations.ratio" or "model.blocks[1].name". `place`
  // is "FILE:LINE: " or "--set PATH=VALUE: ". The last place of a field counts; a section keeps its
  // first place.
  void Add(const std::string& path, const std::string& place, bool is_section);

  // Removes the elements of a list that is replaced.
  void ForgetElements(const std::string& list);

  // Returns the place of the field that an error message is about. That is the field at its
  // beginning ("optimizer.lr: -1, want ..."), the field of that section that it names first
  // ("compression.activations: topk: ratio is 1.5, ..."), or else the nearest section around it
  // that was given. Empty if nothing was.
  std::string Of(const std::string& refusal) const;

 private:
  std::string NamedIn(const std::string& section, const std::string& sentence) const;

  std::map<std::string, std::string> places_;
};

}  // namespace thinwire
