// Encoded documents in a file, of any number: their tokens are read where they are asked for.
//
// The file is little-endian: "thinwire docs 2\n", the number of documents (u64), that of tokens
// (u64), the CRC-32C of the rest (u32) and the number of words of the note (u32); the tokens (u32
// each, document_encoder.h); the number of tokens of each document (u32 each); the note, filled up
// with zeros.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/document_encoder.h"
#include "data/kept_file.h"

namespace thinwire {

// The documents. Immutable and thread-safe.
class DocumentStore {
 public:
  // Takes the tokens of one document after another.
  using Sink = std::function<absl::Status(absl::Span<const DocumentToken>)>;
  // Hands all documents to the sink.
  using Source = std::function<absl::Status(const Sink&)>;

  // Opens FOLDER/NAME.tokens if that is intact and all its ids are below `vocabulary`. Otherwise it
  // is written with the documents of `source`; if the folder cannot be used, or is full, a file
  // without a name in the folder of temporary files, which vanishes with the store. `note`, a text
  // that the source may set, is kept with the documents. Errors of the source, of writing there,
  // and InvalidArgument for a document of 2^32 tokens or more.
  static absl::StatusOr<std::shared_ptr<const DocumentStore>> Open(const std::string& folder,
                                                                   const std::string& name,
                                                                   int64_t vocabulary,
                                                                   const Source& source,
                                                                   const std::string& note = "");

  int64_t documents() const { return contents_.documents; }
  int64_t tokens() const { return contents_.tokens; }
  const std::string& note() const { return contents_.note; }

  // Writes the tokens from number `first` on to `out`, which must not go beyond tokens(). An error
  // names the file.
  absl::Status Read(int64_t first, absl::Span<DocumentToken> out) const;
  // Does the same for the numbers of tokens of documents(), which lie one behind another.
  absl::Status ReadLengths(int64_t first, absl::Span<uint32_t> out) const;

 private:
  // Parts of a file that are kept in memory.
  struct Contents {
    int64_t documents = 0, tokens = 0;
    std::string note;
  };

  DocumentStore(KeptFile file, Contents contents)
      : file_(std::move(file)), contents_(std::move(contents)) {}

  // Checks all bytes and learns the contents. False for what Open did not write.
  static bool Learn(const KeptFile& file, int64_t vocabulary, Contents* contents);

  const KeptFile file_;
  const Contents contents_;
};

}  // namespace thinwire
