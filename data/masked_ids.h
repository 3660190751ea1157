// Ids of files of which only some are to be learned, as masks beside the files say.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "data/id_files.h"
#include "data/token_source.h"

namespace thinwire {

// Returns the path of the mask beside a file of ids: a.mask beside a.bin.
std::string MaskBeside(const std::string& path);

// Returns whether a path is that of a mask by its name.
bool IsMask(const std::string& path);

// Returns a source of the ids and their masks. A mask has a bit for each id, in their order, from
// the lowest bit of the first byte on; 1: the id is to be learned. Where no file has a mask beside
// it, the source is the ids alone. InvalidArgument names a file without a mask where another has
// one, and two files with the same mask, such as ids.000 and ids.001; DataLoss a mask of another
// length than one bit for each id, filled up to bytes, also if it gets that later.
absl::StatusOr<std::shared_ptr<const TokenSource>> WithMasks(std::shared_ptr<const IdFiles> ids);

}  // namespace thinwire
