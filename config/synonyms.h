// Names that PyTorch, Hugging Face, DeepSpeed, nanoGPT or common habit use for our fields.
#pragma once

#include <vector>

namespace thinwire {

struct Synonym {
  const char* name;
  const char* path;  // path of our field from the root of an experiment: "optimizer.lr"
};

// Returns all synonyms. A name has a row for each section in which it means something. If none of
// them is the section in question, the first row counts.
const std::vector<Synonym>& AllSynonyms();

}  // namespace thinwire
