// Encodes files with one thread and prints the speed. With a second folder the ids are written
// there, 32 bits each, so that they can be compared.
// usage: bpe_bench VOCABULARY_DIR IDS_DIR|- FILE...
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "data/bpe.h"
#include "data/official.h"

namespace thinwire {
namespace {

// Number of rounds, of which the fastest counts.
constexpr int kRounds = 5;

absl::StatusOr<std::vector<int32_t>> Encode(const Bpe& bpe, const std::string& text,
                                            double* seconds) {
  absl::StatusOr<std::vector<int32_t>> ids;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    ids = bpe.Encode(text);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (round == 0 || taken.count() < *seconds) *seconds = taken.count();
  }
  return ids;
}

absl::Status Run(const Bpe& bpe, const std::string& ids_dir, const std::string& path) {
  const auto text = ReadDataFile(path, "gpt2-bpe");
  if (!text.ok()) return text.status();
  double seconds = 0;
  const auto ids = Encode(bpe, *text, &seconds);
  if (!ids.ok()) return ids.status();
  const auto decoded = bpe.Decode(*ids);
  if (!decoded.ok() || *decoded != *text) return absl::InternalError(path + " did not come back");
  const std::string name = path.substr(path.find_last_of('/') + 1);
  if (ids_dir != "-") {
    std::ofstream(ids_dir + "/" + name + ".ids", std::ios::binary)
        .write(reinterpret_cast<const char*>(ids->data()),
               static_cast<std::streamsize>(ids->size() * sizeof(int32_t)));
  }
  std::printf("%s %zu %zu %.6f\n", name.c_str(), text->size(), ids->size(), seconds);
  return absl::OkStatus();
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: bpe_bench VOCABULARY_DIR IDS_DIR|- FILE...\n");
    return 2;
  }
  const auto bpe = thinwire::Bpe::Load(argv[1], /*verify=*/false, thinwire::EndOfText::kToken);
  absl::Status status = bpe.status();
  for (int i = 3; status.ok() && i < argc; ++i) status = thinwire::Run(**bpe, argv[2], argv[i]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "bpe_bench: %s\n", status.ToString().c_str());
  return 1;
}
