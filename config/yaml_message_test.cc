#include "config/yaml_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "config/overrides.h"
#include "google/protobuf/util/message_differencer.h"
#include "proto/experiment.pb.h"

namespace thinwire {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Experiment Merged(const std::string& text) {
  Experiment e;
  const absl::Status status = MergeYaml(text, "f.yaml", &e);
  EXPECT_TRUE(status.ok()) << status;
  return e;
}

std::string ErrorOf(const std::string& text) {
  Experiment e;
  const absl::Status status = MergeYaml(text, "f.yaml", &e);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(status.message());
}

std::string OverrideError(const std::string& assignment) {
  Experiment e;
  const absl::Status status = Override(assignment, &e);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << assignment;
  return std::string(status.message());
}

TEST(YamlMessageTest, FillsEveryKindOfField) {
  const Experiment e = Merged(R"(
seed: 18446744073709551615
epochs: 3
model:
  name: custom
  blocks:
    - name: stem
      layers: [{kind: conv, out: 4, bias: false}]
    - {name: head}
pipeline: {cuts: [stem], deadline_seconds: 2.5e1}
compression:
  boundaries:
    stem: {gradients: {codec: uniform, bits: 4}}
)");
  EXPECT_EQ(e.seed(), 18446744073709551615u);
  EXPECT_EQ(e.epochs(), 3u);
  EXPECT_EQ(e.model().blocks_size(), 2);
  EXPECT_EQ(e.model().blocks(0).layers(0).out(), 4u);
  EXPECT_TRUE(e.model().blocks(0).layers(0).has_bias());
  EXPECT_THAT(e.pipeline().cuts(), ElementsAre("stem"));
  EXPECT_EQ(e.pipeline().deadline_seconds(), 25);
  EXPECT_EQ(e.compression().boundaries().at("stem").gradients().bits(), 4u);
  EXPECT_FALSE(e.has_precision());
}

TEST(YamlMessageTest, TextFieldsTakeAnyScalarAsItStands) {
  const Experiment e = Merged("pipeline: {threads: 2}\ndata: {augment: true}\nname: '7'\n");
  EXPECT_EQ(e.pipeline().threads(), "2");
  EXPECT_EQ(e.data().augment(), "true");
  EXPECT_EQ(e.name(), "7");
}

TEST(YamlMessageTest, AScalarIsAListOfOneName) {
  EXPECT_THAT(Merged("pipeline: {cuts: auto}").pipeline().cuts(), ElementsAre("auto"));
}

TEST(YamlMessageTest, AnEmptyListOfNamesIsNotAbsent) {
  EXPECT_THAT(Merged("pipeline: {cuts: []}").pipeline().cuts(), ElementsAre("none"));
  EXPECT_THAT(Merged("pipeline: {cuts: none}").pipeline().cuts(), ElementsAre("none"));
  EXPECT_THAT(Merged("pipeline: {stages: 1}").pipeline().cuts(), ElementsAre());
}

TEST(YamlMessageTest, OnlyTheListOfCutsMayBeEmpty) {
  EXPECT_EQ(ErrorOf("device: []"), "f.yaml:1: device: met an empty list, want a list of names");
  EXPECT_EQ(ErrorOf("capture: {what: []}"),
            "f.yaml:1: capture.what: met an empty list, want a list of names");
  EXPECT_EQ(ErrorOf("capture: {steps: []}"),
            "f.yaml:1: capture.steps: met an empty list, want a list of whole numbers");
  EXPECT_EQ(OverrideError("capture.what=[]"),
            "--set capture.what=[]: capture.what: met an empty list, want a list of names");
  EXPECT_EQ(OverrideError("device="), "--set device=: device: met nothing, want a list of names");
}

TEST(YamlMessageTest, AnEmptySectionSaysNothing) {
  EXPECT_EQ(Merged("compression:\n  boundaries:\nseed: 2\n").seed(), 2u);
}

TEST(YamlMessageTest, AnUnknownFieldNamesLinePathNearestAndAll) {
  EXPECT_EQ(ErrorOf("evaluation:\n  every: 2\n  compresed: true\n"),
            "f.yaml:3: evaluation.compresed: unknown field; did you mean compressed? Fields here: "
            "every, compressed, uncompressed, recalibrated, recalibration_samples, every_steps");
  EXPECT_THAT(ErrorOf("model: {blocks: [{name: a}, {nam: b}]}"),
              HasSubstr("f.yaml:1: model.blocks[1].nam: unknown field; did you mean name?"));
  EXPECT_THAT(ErrorOf("compression: {boundaries: {layer1: {activation: {}}}}"),
              HasSubstr("compression.boundaries.layer1.activation: unknown field; did you mean "
                        "activations?"));
}

TEST(YamlMessageTest, AWrongTypeNamesLinePathValueAndWhatIsWanted) {
  EXPECT_EQ(ErrorOf("\nepochs: ten\n"),
            "f.yaml:2: epochs: met ten, want a whole number from 0 to 4294967295");
  EXPECT_EQ(ErrorOf("optimizer: {lr: fast}"), "f.yaml:1: optimizer.lr: met fast, want a number");
  EXPECT_EQ(ErrorOf("optimizer: {lr: '0.1'}"),
            "f.yaml:1: optimizer.lr: met the text \"0.1\", want a number");
  EXPECT_EQ(ErrorOf("optimizer: {nesterov: 1}"),
            "f.yaml:1: optimizer.nesterov: met 1, want true or false");
  EXPECT_EQ(ErrorOf("precision: [fp32]"), "f.yaml:1: precision: met a list, want text");
  EXPECT_EQ(ErrorOf("epochs:"),
            "f.yaml:1: epochs: met nothing, want a whole number from 0 to 4294967295");
  EXPECT_EQ(ErrorOf("evaluation: 3"),
            "f.yaml:1: evaluation: met 3, want a map of every, compressed, uncompressed, "
            "recalibrated, recalibration_samples, every_steps");
  EXPECT_EQ(ErrorOf("pipeline: {cuts: {a: b}}"),
            "f.yaml:1: pipeline.cuts: met a map, want a list of names, [] for none");
  EXPECT_THAT(ErrorOf("pipeline:\n  cuts:\n    # - layer1\n"),
              HasSubstr("pipeline.cuts: met nothing, want a list of names, [] for none"));
  EXPECT_EQ(ErrorOf("pipeline: {cuts: [a, [b]]}"),
            "f.yaml:1: pipeline.cuts[1]: met a list, want a name");
  EXPECT_EQ(ErrorOf("compression: {boundaries: [a]}"),
            "f.yaml:1: compression.boundaries: met a list, want a map");
  EXPECT_EQ(ErrorOf("model: {blocks: stem}"), "f.yaml:1: model.blocks: met stem, want a list");
  EXPECT_THAT(ErrorOf("just text"), HasSubstr("f.yaml:1: met just text, want a map of name, seed"));
}

TEST(YamlMessageTest, NeverNarrowsOrRounds) {
  for (const char* text :
       {"seed: -1", "seed: 18446744073709551616", "seed: 1.0", "seed: 1e3", "seed: 0x10",
        "seed: +1", "epochs: 4294967296", "compression: {activations: {bits: 3.5}}",
        "optimizer: {lr: 1e400}", "optimizer: {lr: -1e400}", "optimizer: {lr: 1e-400}",
        "optimizer: {lr: .inf}", "optimizer: {lr: inf}", "optimizer: {lr: nan}",
        "optimizer: {lr: 0x1p3}", "optimizer: {lr: 1.2.3}", "optimizer: {nesterov: yes}"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr(", want ")) << text;
  }
}

TEST(YamlMessageTest, MergesMessagesAndMapsAndReplacesLists) {
  Experiment e = Merged(
      "pipeline: {cuts: [a, b], stages: 2}\ncompression: {boundaries: {a: {gradients: {bits: "
      "4}}}}");
  ASSERT_TRUE(MergeYaml("pipeline: {cuts: [c]}\n"
                        "compression: {boundaries: {a: {gradients: {bits: 5}}, c: {}}}",
                        "g.yaml", &e)
                  .ok());
  EXPECT_THAT(e.pipeline().cuts(), ElementsAre("c"));
  EXPECT_EQ(e.pipeline().stages(), 2u);
  EXPECT_EQ(e.compression().boundaries_size(), 2);
  EXPECT_EQ(e.compression().boundaries().at("a").gradients().bits(), 5u);
}

TEST(OverrideTest, SetsScalarsListsAndMaps) {
  Experiment e;
  for (const char* assignment :
       {"compression.activations.codec=topk", "pipeline.cuts=[layer1, layer2]",
        "compression.boundaries.layer1.gradients.bits=4", "data={name: digits, limit: 10}",
        "seed=1", "seed=2"}) {
    ASSERT_TRUE(Override(assignment, &e).ok()) << assignment;
  }
  EXPECT_EQ(e.compression().activations().codec(), "topk");
  EXPECT_THAT(e.pipeline().cuts(), ElementsAre("layer1", "layer2"));
  EXPECT_EQ(e.compression().boundaries().at("layer1").gradients().bits(), 4u);
  EXPECT_EQ(e.data().limit(), 10u);
  EXPECT_EQ(e.seed(), 2u);
}

TEST(OverrideTest, AListReplacesTheListThatWasThere) {
  Experiment e = Merged("pipeline: {cuts: [a, b]}");
  ASSERT_TRUE(Override("pipeline.cuts=[c]", &e).ok());
  EXPECT_THAT(e.pipeline().cuts(), ElementsAre("c"));
  ASSERT_TRUE(Override("pipeline.cuts=", &e).ok());
  EXPECT_THAT(e.pipeline().cuts(), ElementsAre("none"));
  ASSERT_TRUE(Override("pipeline.cuts=[]", &e).ok());
  EXPECT_THAT(e.pipeline().cuts(), ElementsAre("none"));
}

TEST(OverrideTest, AListOfMessagesCannotBeEmptiedButThoseInItsElementsMayBeEmpty) {
  for (const char* assignment : {"model.blocks=[]", "model={name: custom, blocks: []}"}) {
    EXPECT_THAT(OverrideError(assignment),
                HasSubstr(": model.blocks: met an empty list, want at least one element"));
  }
  Experiment e;
  ASSERT_TRUE(Override("model.blocks=[{name: a, layers: []}]", &e).ok());
  EXPECT_EQ(e.model().blocks_size(), 1);
}

TEST(OverrideTest, KeysOfMapsMayHoldDots) {
  Experiment e;
  ASSERT_TRUE(Override("compression.boundaries.layer1.0.gradients.bits=4", &e).ok());
  ASSERT_TRUE(Override("compression.boundaries.layer2.0={gradients: {bits: 3}}", &e).ok());
  EXPECT_EQ(e.compression().boundaries().at("layer1.0").gradients().bits(), 4u);
  EXPECT_EQ(e.compression().boundaries().at("layer2.0").gradients().bits(), 3u);
}

TEST(OverrideTest, ErrorsNameTheAssignment) {
  EXPECT_EQ(OverrideError("seed"), "--set seed: want path.to.field=value");
  EXPECT_EQ(OverrideError("=1"), "--set =1: want path.to.field=value");
  EXPECT_EQ(OverrideError("epochs=ten"),
            "--set epochs=ten: epochs: met ten, want a whole number from 0 to 4294967295");
  EXPECT_THAT(OverrideError("optimiser.lr=1"),
              HasSubstr("--set optimiser.lr=1: optimiser: unknown field; did you mean optimizer?"));
  EXPECT_THAT(OverrideError("data={nam: x}"),
              HasSubstr("--set data={nam: x}: data.nam: unknown field; did you mean name?"));
  EXPECT_THAT(OverrideError("compression.boundaries.layer1.gradient.bits=4"),
              HasSubstr("compression.boundaries.layer1.gradient.bits: met 4, want a map of "
                        "activations, gradients"));
  EXPECT_THAT(OverrideError("seed.x=1"), HasSubstr("seed: met a map, want a whole number"));
  EXPECT_THAT(OverrideError("pipeline.cuts=[a"), HasSubstr("a bracket that is not closed"));
}

TEST(WriteYamlTest, WritesWhatWasSetAndNothingElse) {
  EXPECT_EQ(WriteYaml(Merged("pipeline: {cuts: [layer1, layer2.0], threads: 2}\n"
                             "optimizer: {lr: 1e-5, momentum: 0.9, nesterov: false}\n"
                             "seeds: {}\n"
                             "compression: {boundaries: {b: {}, a: {gradients: {bits: 4}}}}\n")),
            "seeds: {}\n"
            "pipeline:\n"
            "  cuts: [layer1, layer2.0]\n"
            "  threads: 2\n"
            "compression:\n"
            "  boundaries:\n"
            "    a:\n"
            "      gradients:\n"
            "        bits: 4\n"
            "    b: {}\n"
            "optimizer:\n"
            "  lr: 1.0e-05\n"
            "  momentum: 0.9\n"
            "  nesterov: false\n");
}

TEST(WriteYamlTest, ReadsBackToAnEqualMessage) {
  Experiment e = Merged(
      "seed: 18446744073709551615\nepochs: 0\nprecision: 'a: \"b\" \\ #'\n"
      "data: {dir: '~', name: '', augment: 'null'}\npipeline: {cuts: [], deadline_seconds: 0.1}\n"
      "model: {blocks: [{name: a, layers: [{kind: residual, body: [{kind: relu}]}]}, {}]}\n"
      "optimizer: {lr: 0.30000000000000004, weight_decay: 5e-324, momentum: 1.7e308}\n");
  e.add_device("cuda:1");
  e.add_device("two\nlines\tand K\xC3\xB6ln");
  const Experiment again = Merged(WriteYaml(e));
  EXPECT_TRUE(MessageDifferencer::Equals(e, again)) << WriteYaml(e);
}

}  // namespace
}  // namespace thinwire
