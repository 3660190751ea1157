// The worked examples of docs/compression.md are what the codecs really write and read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "compress/round_trip.h"

namespace thinwire {
namespace {

struct Example {
  std::string codec;
  Shape shape;
  std::vector<float> values, decoded;
  std::vector<uint8_t> bytes;
};

// Lines are a key and its numbers; a key may come several times, and "#" begins a remark.
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

std::vector<CodecSpec> SpecsOfThePage() {
  std::vector<CodecSpec> specs(8);
  specs[0].kind = CodecKind::kNone;
  specs[1].kind = CodecKind::kBf16;
  specs[2].kind = CodecKind::kFp16;
  for (int i = 3; i < 6; ++i) specs[i].kind = CodecKind::kUniform;
  specs[3].bits = 3;
  specs[4].bits = 2;
  specs[4].range = Range::kMaxAbs;
  specs[4].scope = Scope::kToken;
  specs[5].bits = 4;
  specs[5].range = Range::kFixedPoint;
  specs[5].scope = Scope::kChannel;
  for (int i = 6; i < 8; ++i) specs[i].kind = CodecKind::kTopK;
  specs[6].ratio = 0.5;
  specs[7].k = 1;
  specs.push_back(specs[7]);
  specs[8].k = 8;
  specs[8].values = Values::kBF16;
  return specs;
}

TEST(WorkedExamplesTest, AreWhatTheCodecsWriteAndRead) {
  const std::vector<CodecSpec> specs = SpecsOfThePage();
  const std::vector<Example> examples = ReadExamples();
  EXPECT_EQ(examples.size(), 10u);
  for (const Example& example : examples) {
    const auto spec = std::find_if(specs.begin(), specs.end(), [&](const CodecSpec& s) {
      return s.ToString() == example.codec;
    });
    ASSERT_NE(spec, specs.end()) << example.codec;
    const Tensor x = TensorOf(example.shape, example.values);
    EXPECT_EQ(*EncodeToBytes(*spec, x), example.bytes) << example.codec;
    EXPECT_EQ(FloatsOf(*DecodeFromBytes(*spec, example.bytes, example.shape)), example.decoded)
        << example.codec;
  }
}

}  // namespace
}  // namespace thinwire
