// Replaces libFuzzer: runs a fuzz target once on every file of the folders on the command line, so
// that ordinary builds test the corpus. It also runs -beginnings=N beginnings of each file, as
// being cut short is the most common damage. Finally it runs -mutations=N files with a few bytes
// changed, the same ones in every run. Other flags are ignored.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr char kBeginningsFlag[] = "-beginnings=", kMutationsFlag[] = "-mutations=";

// Runs the target on memory of exactly the input's size, so that a sanitizer sees a read past the
// end.
void Run(const std::string& bytes) {
  const std::vector<uint8_t> input(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

void RunBeginnings(const std::string& bytes, size_t count) {
  for (size_t i = 0; i <= count; ++i) Run(bytes.substr(0, bytes.size() * i / count));
}

// Makes one to four random changes: replaces a byte, flips one of its bits, or removes or doubles a
// piece.
std::string Mutated(std::string bytes, std::minstd_rand* random) {
  for (uint32_t changes = 1 + (*random)() % 4; changes > 0 && !bytes.empty(); --changes) {
    const size_t at = (*random)() % bytes.size();
    switch ((*random)() % 4) {
      case 0:
        bytes[at] = static_cast<char>((*random)());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << ((*random)() % 8)));
        break;
      case 2:
        bytes.erase(at, 1 + (*random)() % 8);
        break;
      case 3:
        bytes.insert(at, bytes.substr(at, 1 + (*random)() % 8));
        break;
    }
  }
  return bytes;
}

std::vector<std::string> ReadFolder(const char* folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> files;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  size_t num_files = 0;
  size_t num_beginnings = 1;
  int num_mutations = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind(kBeginningsFlag, 0) == 0) {
      const int wanted = std::atoi(argument.c_str() + sizeof(kBeginningsFlag) - 1);
      num_beginnings = static_cast<size_t>(std::max(wanted, 1));
    }
    if (argument.rfind(kMutationsFlag, 0) == 0) {
      num_mutations = std::atoi(argument.c_str() + sizeof(kMutationsFlag) - 1);
    }
    if (argument[0] == '-') continue;
    const std::vector<std::string> files = ReadFolder(argv[i]);
    num_files += files.size();
    for (const std::string& file : files) RunBeginnings(file, num_beginnings);
    std::minstd_rand random(1);
    for (int j = 0; j < num_mutations && !files.empty(); ++j) {
      Run(Mutated(files[static_cast<size_t>(j) % files.size()], &random));
    }
  }
  std::printf("replayed %zu files, their beginnings and %d mutations\n", num_files, num_mutations);
  return num_files > 0 ? 0 : 1;  // an empty corpus tests nothing
}
