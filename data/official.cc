#include "data/official.h"

#include <algorithm>
#include <cassert>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/stand_in.h"
#include "base/status.h"

namespace thinwire {
namespace {

OfficialData Cifar10() {
  constexpr int64_t kBytes = 30'730'000;
  return {
      "cifar10",
      "60,000 colour images of 32 x 32 pixels in 10 classes",
      {{"data_batch_1.bin", kBytes,
        "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
       {"data_batch_2.bin", kBytes,
        "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"},
       {"data_batch_3.bin", kBytes,
        "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"},
       {"data_batch_4.bin", kBytes,
        "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"},
       {"data_batch_5.bin", kBytes,
        "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"},
       {"test_batch.bin", kBytes,
        "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"}},
      {{"https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz", "cifar-10-batches-bin", {}}}};
}

OfficialData Cifar100() {
  return {"cifar100",
          "60,000 colour images of 32 x 32 pixels in 100 classes",
          {{"train.bin", 153'700'000,
            "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29"},
           {"test.bin", 30'740'000,
            "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a"}},
          {{"https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz", "cifar-100-binary", {}}}};
}

// Returns the four packed files of MNIST or of a set in its format, which all `hosts` have.
OfficialData IdxFiles(const char* name, const char* what, const std::vector<OfficialFile>& files,
                      const std::vector<std::string>& hosts) {
  OfficialData data{name, what, files, {}};
  for (const std::string& host : hosts) {
    OfficialSource source;
    for (const OfficialFile& file : files) source.files.push_back(host + file.name);
    data.sources.push_back(source);
  }
  return data;
}

OfficialData Mnist() {
  return IdxFiles("mnist", "70,000 grey images of 28 x 28 pixels: handwritten digits",
                  {{"train-images-idx3-ubyte.gz", 9'912'422,
                    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
                   {"train-labels-idx1-ubyte.gz", 28'881,
                    "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
                   {"t10k-images-idx3-ubyte.gz", 1'648'877,
                    "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
                   {"t10k-labels-idx1-ubyte.gz", 4'542,
                    "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}},
                  {"https://ossci-datasets.s3.amazonaws.com/mnist/",
                   "https://storage.googleapis.com/cvdf-datasets/mnist/"});
}

OfficialData FashionMnist() {
  return IdxFiles("fashion_mnist", "70,000 grey images of 28 x 28 pixels: ten kinds of clothes",
                  {{"train-images-idx3-ubyte.gz", 26'421'880,
                    "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
                   {"train-labels-idx1-ubyte.gz", 29'515,
                    "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
                   {"t10k-images-idx3-ubyte.gz", 4'422'102,
                    "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
                   {"t10k-labels-idx1-ubyte.gz", 5'148,
                    "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"}},
                  {"https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/"});
}

// Returns the word-level version, whose rare words are <unk>. The second source has the same bytes
// under other names.
OfficialData Wikitext2() {
  const std::string examples =
      "https://raw.githubusercontent.com/pytorch/examples/main/word_language_model/data/"
      "wikitext-2/";
  return {"wikitext2",
          "WikiText-2: two million words of Wikipedia",
          {{"wiki.train.tokens", 10'797'148,
            "9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f"},
           {"wiki.valid.tokens", 1'121'681,
            "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8"},
           {"wiki.test.tokens", 1'256'449,
            "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0"}},
          {{"https://s3.amazonaws.com/research.metamind.io/wikitext/wikitext-2-v1.zip",
            "wikitext-2",
            {}},
           {"", "", {examples + "train.txt", examples + "valid.txt", examples + "test.txt"}}}};
}

OfficialData Gpt2Bpe() {
  const std::string encodings = "https://openaipublic.blob.core.windows.net/gpt-2/encodings/main/";
  return {
      "gpt2-bpe",
      "GPT-2's vocabulary: 50,257 tokens",
      {{"encoder.json", 1'042'301,
        "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783"},
       {"vocab.bpe", 456'318, "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5"}},
      {{"", "", {encodings + "encoder.json", encodings + "vocab.bpe"}}}};
}

// Returns the files of one of GLUE's tasks that have labels.
OfficialData Glue(const char* name, const char* what, const std::string& folder,
                  const OfficialFile& train, const OfficialFile& dev) {
  return {name,
          what,
          {train, dev},
          {{"https://dl.fbaipublicfiles.com/glue/data/" + folder + ".zip", folder, {}}}};
}

}  // namespace

const std::vector<OfficialData>& AllOfficialData() {
  static const auto* const all = new std::vector<OfficialData>{
      Cifar10(),
      Cifar100(),
      Mnist(),
      FashionMnist(),
      Wikitext2(),
      Gpt2Bpe(),
      Glue(
          "glue-cola", "GLUE's CoLA: sentences that are acceptable or not", "CoLA",
          {"train.tsv", 428590, "cb368ebeb9f27d7ad03720d27ddc95687a311bdb100781a2fe59a5f5b1bc0624"},
          {"dev.tsv", 53717, "8c013e21dc39957cac37378d87bebe225b694a0d5fe13eded66c2856628833fd"}),
      Glue(
          "glue-rte", "GLUE's RTE: sentences that entail others or not", "RTE",
          {"train.tsv", 846226, "41e3a9b063433392343fad9e962cf2f58b681c78d8f71592f4186f0837246c5c"},
          {"dev.tsv", 90343, "80230dfa1347282e7b532b06a1004a76a710087541189bf874223ddf0e3819fb"}),
      Glue("glue-sst2", "GLUE's SST-2: positive and negative sentences", "SST-2",
           {"train.tsv", 3806081,
            "48eac26399f8456935f81dd9e3a745c1430adb6c62e233ccfe22db4a0d15d1d1"},
           {"dev.tsv", 94931, "54a9c12c77e402fc14d6a66a506f24d999f596b0176eb777c972cccc2f9cc4b0"}),
      Glue(
          "glue-stsb", "GLUE's STS-B: pairs of sentences and how alike they are", "STS-B",
          {"train.tsv", 984099, "41c4d978b6162abdcada7e49a982211954cca5459c228db478af333124b257a2"},
          {"dev.tsv", 276928, "fe7dc0632a5033562f3cadff991f6e8d9b9b6311861660e78c3c82eb7db67f59"})};
  return *all;
}

const OfficialData& OfficialDataOf(std::string_view name) {
  const std::vector<OfficialData>& all = AllOfficialData();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [name](const OfficialData& data) { return data.name == name; });
  assert(found != all.end());
  return *found;
}

absl::Status CheckOfficial(const OfficialFile& file, const std::string& path,
                           std::string_view content) {
  const auto bytes = static_cast<int64_t>(content.size());
  const std::string sha256 = Sha256(content);
  if (bytes == file.bytes && sha256 == file.sha256) return absl::OkStatus();
  RETURN_IF_ERROR(CheckNoStandIn(path, content));
  return absl::DataLossError(absl::StrCat(path, " has SHA-256 ", sha256, " (", bytes,
                                          " bytes), want ", file.sha256, " (", file.bytes,
                                          " bytes)"));
}

absl::StatusOr<std::string> ReadDataFile(const std::string& path, std::string_view data) {
  RETURN_IF_ERROR(CheckRegular(path));
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) {
    return absl::NotFoundError(absl::StrCat("cannot read ", path, ": `thinwire data fetch ",
                                            std::string(data), "` gets the files into data/",
                                            std::string(data)));
  }
  std::string content(size, '\0');
  if (!file.read(content.data(), static_cast<std::streamsize>(size))) {
    return absl::DataLossError(absl::StrCat("cannot read all ", size, " bytes of ", path));
  }
  RETURN_IF_ERROR(CheckNoStandIn(path, content));
  RETURN_IF_ERROR(CheckNoArchive(path, content));
  return content;
}

}  // namespace thinwire
