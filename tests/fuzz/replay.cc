// Stands in for libFuzzer: runs a fuzz target once on every file of the folders on the command
// line, and on each file's beginnings (cut short is the most common damage). Flags are ignored.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr size_t kBeginnings = 64;

void Replay(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  for (size_t i = 0; i <= kBeginnings; ++i) {
    // A copy of its own, so that a sanitizer sees a read past the end.
    const std::string input = bytes.substr(0, bytes.size() * i / kBeginnings);
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] == '-') continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      Replay(entry.path());
      ++files;
    }
  }
  std::printf("replayed %d files and their beginnings\n", files);
  return files > 0 ? 0 : 1;  // an empty corpus tests nothing
}
