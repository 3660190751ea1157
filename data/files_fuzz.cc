// Reads any bytes as the files of a data set. They must be refused, or give samples with labels in
// range. The first byte chooses the kind: records of CIFAR-10, a text, a text's cached tokens, or
// ids of other programs; the next three say how much of it is asked for.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "data/characters.h"
#include "data/dataset.h"
#include "data/token_cache.h"

namespace {

using thinwire::DataOptions;
using thinwire::Dataset;

// A folder that is removed when the process ends.
class Folder {
 public:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "files_fuzz.XXXXXX";
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }

  const std::filesystem::path& path() const { return path_; }
  void Write(const std::filesystem::path& name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
  }
  void Clear() const {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      std::filesystem::remove_all(entry.path());
    }
  }

 private:
  std::filesystem::path path_;
};

// Reads all samples with the least and the most augmentation.
void ReadAll(const Dataset& data) {
  std::vector<int32_t> labels(static_cast<size_t>(data.labels_per_sample()));
  std::vector<int32_t> tokens(labels.size());
  std::vector<float> pixels(data.is_text() ? 0
                                           : static_cast<size_t>(data.sample_shape().elements()));
  Dataset::Augmentation most;
  most.dy = most.dx = data.crop_padding();
  most.flip = data.may_flip();
  most.place = data.places() - 1;
  if (data.size() == 0) std::abort();
  for (int64_t sample = 0; sample < data.size(); ++sample) {
    for (const Dataset::Augmentation& augmentation : {Dataset::Augmentation(), most}) {
      data.Labels(sample, augmentation, absl::MakeSpan(labels));
      for (const int32_t label : labels) {
        const bool may_lack = label == -1 && data.may_lack_labels();
        if (!may_lack && (label < 0 || label >= data.classes())) std::abort();
      }
      if (data.is_text()) {
        data.LoadTokens(sample, augmentation, absl::MakeSpan(tokens));
      } else {
        data.Load(sample, augmentation, absl::MakeSpan(pixels));
      }
    }
  }
}

void ReadSplits(const DataOptions& options) {
  const auto data = thinwire::LoadData(options);
  if (!data.ok()) return;
  ReadAll(*data->train);
  ReadAll(*data->test);
}

void TryImages(const Folder& folder, const uint8_t* asked, std::string_view bytes) {
  folder.Write("data_batch_1.bin", bytes);
  folder.Write("test_batch.bin", bytes);
  DataOptions options;
  options.name = "cifar10";
  options.dir = folder.path();
  options.limit = asked[0];
  options.test_limit = asked[1];
  options.verify = (asked[2] & 1) != 0;
  options.held_out = asked[2] >> 1;
  ReadSplits(options);
}

void TryText(const Folder& folder, const uint8_t* asked, std::string_view bytes) {
  folder.Write("text", bytes);
  DataOptions options;
  options.name = "text";
  options.text.file = folder.path() / "text";
  options.text.tokens =
      (asked[2] & 1) != 0 ? thinwire::TokenKind::kBytes : thinwire::TokenKind::kCharacters;
  options.text.context = 1 + asked[0];
  options.text.windows = asked[1];
  options.text.split = (1 + asked[2]) / 257.0;
  ReadSplits(options);
}

// The name of the file depends on text and vocabulary, its content on `bytes`.
void TryTokens(const Folder& folder, std::string_view bytes) {
  constexpr std::string_view kText = "to be or not to be";
  const auto tokenizer = thinwire::Characters::Of(kText);
  const auto encoded = thinwire::CachedTokens(folder.path(), **tokenizer, kText);
  if (!encoded.ok()) std::abort();
  folder.Write(std::filesystem::directory_iterator(folder.path())->path().filename(), bytes);
  const auto kept = thinwire::CachedTokens(folder.path(), **tokenizer, kText);
  if (!kept.ok()) std::abort();
  for (const int32_t id : *kept) {
    if (id < 0 || id >= (*tokenizer)->vocabulary()) std::abort();
  }
}

// The bytes in two files.
void TryIds(const Folder& folder, const uint8_t* asked, std::string_view bytes) {
  const size_t cut = bytes.size() * asked[2] / 256;
  folder.Write("a.bin", bytes.substr(0, cut));
  folder.Write("b.bin", bytes.substr(cut));
  DataOptions options;
  options.name = "tokens";
  options.text.tokens =
      (asked[2] & 1) != 0 ? thinwire::TokenKind::kBytes : thinwire::TokenKind::kIds;
  options.text.type = static_cast<thinwire::IdType>(asked[0] % 3);
  options.text.file = folder.path() / (asked[2] < 128 ? "*.bin" : "b.bin");
  options.text.context = 1 + asked[0];
  options.text.windows = asked[1];
  ReadSplits(options);
}

void TryLines(const Folder& folder, const uint8_t* asked, std::string_view bytes) {
  folder.Write("lines", bytes);
  DataOptions options;
  options.name = "jsonl";
  options.text.tokens = thinwire::TokenKind::kBytes;
  options.text.file = folder.path() / "lines";
  options.text.context = 1 + asked[0];
  options.text.packing = static_cast<thinwire::Packing>(asked[1] % 3);
  options.text.too_long = static_cast<thinwire::TooLong>(asked[1] / 3 % 3);
  options.text.loss_on = static_cast<thinwire::LossOn>(asked[1] / 9 % 3);
  options.text.chat = thinwire::KnownChatFormat(static_cast<thinwire::ChatKind>(asked[1] / 18 % 6));
  options.text.split = (1 + asked[2]) / 257.0;
  ReadSplits(options);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kHeader = 4;
  if (size < kHeader) return 0;
  static const Folder folder;
  folder.Clear();
  const std::string_view bytes(reinterpret_cast<const char*>(data) + kHeader, size - kHeader);
  switch (data[0] % 5) {
    case 0:
      TryImages(folder, data + 1, bytes);
      break;
    case 1:
      TryText(folder, data + 1, bytes);
      break;
    case 2:
      TryTokens(folder, bytes);
      break;
    case 3:
      TryIds(folder, data + 1, bytes);
      break;
    default:
      TryLines(folder, data + 1, bytes);
  }
  return 0;
}
