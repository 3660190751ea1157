// Looks up rows of a table by token; contracts in nn/ops.h. Results do not depend on the thread
// count.
#pragma once

#include "nn/ops.h"

namespace thinwire::cpu {

Error Embed(int threads, const Embedding& arguments);
Error EmbedBackward(int threads, const EmbeddingBackward& arguments);

}  // namespace thinwire::cpu
