// Encodes files with one thread and the tokenizer of a model's folder, and prints bytes, ids and
// the seconds of the fastest round. With a second folder the ids are written there, 32 bits each.
// The first line says how many seconds the folder took to open.
// usage: hf_tokenizer_bench VOCABULARY_DIR IDS_DIR|- text|ids FILE...
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/hf_tokenizer.h"

namespace thinwire {
namespace {

constexpr int kRounds = 5;

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

absl::Status Run(const HfTokenizer& tokenizer, const std::string& ids_dir,
                 const std::string& path) {
  const auto text = ReadFile(path);
  if (!text.ok()) return text.status();
  double fastest = 0;
  absl::StatusOr<std::vector<int32_t>> ids;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    ids = tokenizer.Encode(*text);
    const double seconds = SecondsSince(start);
    if (round == 0 || seconds < fastest) fastest = seconds;
  }
  if (!ids.ok()) return ids.status();
  const std::string name = path.substr(path.find_last_of('/') + 1);
  if (ids_dir != "-") {
    std::ofstream(ids_dir + "/" + name + ".ids", std::ios::binary)
        .write(reinterpret_cast<const char*>(ids->data()),
               static_cast<std::streamsize>(ids->size() * sizeof(int32_t)));
  }
  std::printf("%s %zu %zu %.6f\n", name.c_str(), text->size(), ids->size(), fastest);
  return absl::OkStatus();
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  using thinwire::Specials;
  if (argc < 5) {
    std::fprintf(stderr, "usage: hf_tokenizer_bench VOCABULARY_DIR IDS_DIR|- text|ids FILE...\n");
    return 2;
  }
  const auto start = std::chrono::steady_clock::now();
  const Specials specials = argv[3] == std::string("ids") ? Specials::kIds : Specials::kText;
  const auto tokenizer = thinwire::HfTokenizer::Load(argv[1], specials);
  absl::Status status = tokenizer.status();
  if (status.ok()) std::printf("opened %.6f\n", thinwire::SecondsSince(start));
  for (int i = 4; status.ok() && i < argc; ++i) {
    status = thinwire::Run(**tokenizer, argv[2], argv[i]);
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "hf_tokenizer_bench: %s\n", std::string(status.message()).c_str());
  return 1;
}
