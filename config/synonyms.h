// Names that PyTorch, Hugging Face, DeepSpeed, nanoGPT or plain habit give to fields of ours.
#pragma once

#include <vector>

namespace thinwire {

struct Synonym {
  const char* name;
  const char* path;  // of our field, from the root of an experiment: "optimizer.lr"
};

// All of them. A name has as many rows as sections in which it means something; where none of them
// is the section at hand, the first counts.
const std::vector<Synonym>& AllSynonyms();

}  // namespace thinwire
