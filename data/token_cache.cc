#include "data/token_cache.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/status.h"

namespace thinwire {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

constexpr char kMagic[] = "thinwire tokens\n";
constexpr size_t kMagicBytes = sizeof(kMagic) - 1;

struct Header {
  char magic[kMagicBytes];
  uint32_t ids_low, ids_high;  // halves of their number, so that the struct has no padding
  uint32_t crc;
};
static_assert(sizeof(Header) == kMagicBytes + 12);

Header HeaderOf(const std::vector<int32_t>& ids) {
  Header header;
  std::memcpy(header.magic, kMagic, kMagicBytes);
  header.ids_low = static_cast<uint32_t>(ids.size());
  header.ids_high = static_cast<uint32_t>(ids.size() >> 32);
  header.crc = Crc32c(ids.data(), ids.size() * sizeof(int32_t));
  return header;
}

// Returns nothing if the file does not exist or is not what Write made.
std::optional<std::vector<int32_t>> Read(const std::string& path, int32_t vocabulary) {
  if (!CheckRegular(path).ok()) return std::nullopt;
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file || bytes < sizeof(Header)) return std::nullopt;
  if ((bytes - sizeof(Header)) % sizeof(int32_t) != 0) return std::nullopt;
  Header header;
  std::vector<int32_t> ids((bytes - sizeof(Header)) / sizeof(int32_t));
  file.read(reinterpret_cast<char*>(&header), sizeof(header));
  file.read(reinterpret_cast<char*>(ids.data()),
            static_cast<std::streamsize>(ids.size() * sizeof(int32_t)));
  if (!file) return std::nullopt;
  const Header wanted = HeaderOf(ids);
  if (std::memcmp(&header, &wanted, sizeof(header)) != 0) return std::nullopt;
  const bool fits = std::all_of(ids.begin(), ids.end(),
                                [vocabulary](int32_t id) { return 0 <= id && id < vocabulary; });
  return fits ? std::make_optional(std::move(ids)) : std::nullopt;
}

// Several processes may write the same file at once: each writes its own, which is hidden from who
// lists the folder, and renames it when complete.
void Write(const std::string& folder, const std::string& name, const std::vector<int32_t>& ids) {
  const std::string path = absl::StrCat(folder, "/", name);
  std::string draft = absl::StrCat(folder, "/.", name, ".XXXXXX");
  const int descriptor = mkstemp(draft.data());
  if (descriptor < 0) return;
  fchmod(descriptor, 0644);  // other readers of the text may use it, too
  close(descriptor);
  std::ofstream file(draft, std::ios::binary);
  const Header header = HeaderOf(ids);
  file.write(reinterpret_cast<const char*>(&header), sizeof(header));
  file.write(reinterpret_cast<const char*>(ids.data()),
             static_cast<std::streamsize>(ids.size() * sizeof(int32_t)));
  file.close();
  if (!file || std::rename(draft.c_str(), path.c_str()) != 0) std::remove(draft.c_str());
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> CachedTokens(const std::string& folder,
                                                  const Tokenizer& tokenizer, std::string_view text,
                                                  absl::Span<const size_t> begins) {
  const std::optional<int32_t> end = tokenizer.end_of_text();
  const std::string between = begins.empty() ? "" : end ? absl::StrCat(" end ", *end) : " no end";
  const std::string name = absl::StrCat(
      Sha256(absl::StrCat(Sha256(text), tokenizer.digest(), absl::StrJoin(begins, " "), between)),
      ".tokens");
  std::optional<std::vector<int32_t>> kept =
      Read(absl::StrCat(folder, "/", name), tokenizer.vocabulary());
  if (kept) return *std::move(kept);
  ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer.EncodeDocuments(text, begins));
  Write(folder, name, ids);
  return ids;
}

}  // namespace thinwire
