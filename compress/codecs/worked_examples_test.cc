// Tests that the worked examples of docs/compression.md are what the codecs really write and read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "compress/codecs/round_trip_testing.h"
#include "compress/spec_text.h"

namespace thinwire {
namespace {

struct Example {
  std::string codec;
  Shape shape;
  std::vector<float> values, support, decoded;
  std::vector<uint8_t> bytes;
  std::vector<uint32_t> documents;  // rows with which they begin
};

// Lines are a key and its numbers; a key may come several times, and "#" begins a remark. Without
// values an example is of what no encoder here makes.
void AddLine(const std::string& line, Example* example) {
  std::istringstream text(line.substr(0, line.find('#')));
  std::string key, word;
  text >> key;
  if (key == "codec") {
    text >> std::ws;
    std::getline(text, example->codec);
    return;
  }
  while (text >> word) {
    if (key == "shape") example->shape.Append(std::stoll(word));
    if (key == "values") example->values.push_back(std::stof(word));
    if (key == "support") example->support.push_back(std::stof(word));
    if (key == "documents") example->documents.push_back(std::stoul(word));
    if (key == "decoded") example->decoded.push_back(std::stof(word));
    if (key == "bytes") example->bytes.push_back(std::stoi(word, nullptr, 16));
  }
}

std::vector<Example> ReadExamples() {
  std::ifstream page("docs/compression.md");
  std::vector<Example> examples;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line == "```example") {
      examples.emplace_back();
      inside = true;
    } else if (line == "```") {
      inside = false;
    } else if (inside) {
      AddLine(line, &examples.back());
    }
  }
  return examples;
}

TEST(WorkedExamplesTest, AreWhatTheCodecsWriteAndRead) {
  const std::vector<Example> examples = ReadExamples();
  EXPECT_GE(examples.size(), 10u);
  for (const Example& example : examples) {
    const auto spec = ParseCodec(example.codec);
    ASSERT_TRUE(spec.ok()) << spec.status();
    const SupportMap support = SupportOfValues(example.support);
    if (!example.values.empty()) {
      const Tensor x = TensorOf(example.shape, example.values);
      const auto bytes = EncodeToBytes(*spec, x, /*random_key=*/1, &support, example.documents);
      ASSERT_TRUE(bytes.ok()) << example.codec << bytes.status();
      EXPECT_EQ(*bytes, example.bytes) << example.codec;
    }
    const auto decoded = DecodeFromBytes(*spec, example.bytes, example.shape, DType::kF32, &support,
                                         example.documents);
    ASSERT_TRUE(decoded.ok()) << example.codec << decoded.status();
    EXPECT_EQ(FloatsOf(*decoded), example.decoded) << example.codec;
  }
}

}  // namespace
}  // namespace thinwire
