#include "stage_server/parts/sum_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "compress/cpu/kernels.h"
#include "nn/cpu/ops.h"
#include "tensor/cpu/device.h"
#include "wire/memory_link.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

// Part 0 of two, and the end of its link that part 1 has.
class SumExchangeTest : public ::testing::Test {
 protected:
  SumExchangeTest() {
    auto [here, there] = NewMemoryLinks(Options(), Options());
    exchange_ = *SumExchange::New(OptionsOf(CodecSpec()), {Sum()});
    exchange_->peers().Attach(1, std::move(here));
    other_ = std::move(there);
    exchange_->Begin({PHASE_TRAIN, DIRECTION_UNSPECIFIED, 0, /*epoch=*/1, /*step=*/3, 1},
                     /*compress=*/true);
  }

  static LinkOptions Options() {
    LinkOptions options;
    options.name = "sums";
    options.peer = "stage 0 of carrier 1";
    options.cut = kPeerCuts;
    options.is_among_carriers = options.is_among_parts = true;
    options.receives = DIRECTION_GRADIENT;
    options.max_payload_bytes = 64;
    options.queue_capacity = 4;
    return options;
  }
  SumOptions OptionsOf(const CodecSpec& codec) const {
    SumOptions options;
    options.sums.parts = options.places = 2;
    options.sums.activations.codec = codec;
    options.patience = std::make_shared<Patience>(absl::Milliseconds(50));
    options.max_batch = 4;
    options.device = CpuDevice();
    options.ops = ops_.get();
    options.kernels = CpuCodecKernels();
    return options;
  }
  static StageSum Sum() {
    StageSum sum;
    sum.layer.kind = LayerKind::kSum;
    sum.layer.name = "h.0.mlp";
    sum.layer.in = sum.layer.out = {1, 2, 3};
    sum.number = 5;
    sum.is_coded = true;
    return sum;
  }
  static Tensor Filled(float value, const Shape& shape = {1, 2, 3}) {
    Tensor tensor = *Tensor::Allocate(CpuDevice(), DType::kF32, shape);
    for (float& one : tensor.floats()) one = value;
    return tensor;
  }
  // Returns a message of part 1, of the results of sum 5.
  static Message OfOther(const Tensor& tensor) {
    Message message;
    message.key = {PHASE_TRAIN, DIRECTION_ACTIVATION, 5 * 2 + 1, 1, 3, 1};
    message.dtype = tensor.dtype();
    message.shape = tensor.shape();
    message.payload = {tensor.buffer(),
                       {static_cast<const uint8_t*>(tensor.data()), tensor.bytes()}};
    return message;
  }
  absl::StatusOr<Tensor> Add() {
    return exchange_->Add(PassDirection::kForward, "h.0.mlp", {Filled(1)});
  }
  std::string Refused(Message message) {
    other_->Send(std::move(message));
    return std::string(Add().status().message());
  }

  std::unique_ptr<Ops> ops_ = NewCpuOps(1);
  std::unique_ptr<SumExchange> exchange_;
  std::unique_ptr<Link> other_;
};

TEST_F(SumExchangeTest, BothPartsAreAddedUpAndEachIsSentTheOther) {
  other_->Send(OfOther(Filled(2)));
  const absl::StatusOr<Tensor> sum = Add();
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_EQ(sum->floats()[5], 3);
  const Message sent = *other_->Receive(SteadyTime::Now() + absl::Seconds(1));
  EXPECT_EQ(sent.key.cut, 10u);
  EXPECT_EQ(sent.payload.bytes.size(), 24u);
  const auto counts = exchange_->counts(DIRECTION_ACTIVATION).all().train;
  EXPECT_EQ(counts.messages, 1u);  // those of the other part are counted there
  EXPECT_EQ(counts.raw_bytes, 24u);
}

TEST_F(SumExchangeTest, ASumOfATracedStepIsASlice) {
  SumOptions options = OptionsOf(CodecSpec());
  options.sums.parts = options.places = 1;
  options.trace = std::make_shared<StepTrace>(3, 3, 10);
  exchange_ = *SumExchange::New(options, {Sum()});
  for (const uint64_t step : {2, 3}) {
    exchange_->Begin({PHASE_TRAIN, DIRECTION_UNSPECIFIED, 0, /*epoch=*/1, step, /*microbatch=*/1},
                     /*compress=*/true);
    ASSERT_TRUE(exchange_->Add(PassDirection::kBackward, "h.0.mlp", {Filled(1)}).ok());
  }
  const std::vector<Slice> slices = options.trace->Take().slices;
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_STREQ(slices[0].name, "sum");
  EXPECT_EQ(slices[0].step, 3u);
  EXPECT_EQ(slices[0].microbatch, 1);
  EXPECT_EQ(slices[0].direction, DIRECTION_GRADIENT);
}

TEST_F(SumExchangeTest, WhatIsSentDoesNotChangeWhereTheSumIsChanged) {
  other_->Send(OfOther(Filled(2)));
  Tensor sum = *Add();
  for (float& one : sum.floats()) one = 7;
  const Message sent = *other_->Receive(SteadyTime::Now() + absl::Seconds(1));
  EXPECT_EQ(*reinterpret_cast<const float*>(sent.payload.bytes.data()), 1);
}

// The same, where part 0 has the first of two positions and part 1 the second.
class SlicedExchangeTest : public SumExchangeTest {
 protected:
  SlicedExchangeTest() {
    slices_.count = 2;
    slices_.positions = 2;
    slices_.end = 1;
    StageSum sum = Sum();
    sum.layer.slices = slices_;
    exchange_ = *SumExchange::New(OptionsOf(CodecSpec()), {sum});
    auto [here, there] = NewMemoryLinks(Options(), Options());
    exchange_->peers().Attach(1, std::move(here));
    other_ = std::move(there);
    exchange_->Begin(key_, /*compress=*/true);
  }
  Message Sent() { return *other_->Receive(SteadyTime::Now() + absl::Seconds(1)); }
  static Message WithCut(Message message, uint32_t cut) {
    message.key.cut = cut;
    return message;
  }

  const MessageKey key_ = {PHASE_TRAIN, DIRECTION_UNSPECIFIED, 0, /*epoch=*/1, /*step=*/3, 1};
  PositionSlices slices_;
};

TEST_F(SlicedExchangeTest, ASliceOfASumGoesToThePartThatHasIt) {
  other_->Send(WithCut(OfOther(Filled(2, {1, 1, 3})), (5 * 3 + 1) * 2));
  Tensor partial = Filled(1);
  partial.floats()[4] = 7;
  const absl::StatusOr<Tensor> sum =
      exchange_->Scatter(PassDirection::kForward, "h.0.mlp", slices_, {partial});
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_EQ(sum->shape(), (Shape{1, 3}));
  EXPECT_EQ(sum->floats()[2], 3);
  const Message sent = Sent();
  EXPECT_EQ(sent.key.cut, 5 * 3 * 2 + 1u);
  EXPECT_EQ(sent.shape, (Shape{1, 1, 3}));
  EXPECT_EQ(reinterpret_cast<const float*>(sent.payload.bytes.data())[1], 7);
  const auto counts = exchange_->counts(DIRECTION_ACTIVATION).all().train;
  EXPECT_EQ(counts.messages, 1u);  // its own slice goes nowhere
  EXPECT_EQ(counts.elements, 3u);
}

TEST_F(SlicedExchangeTest, AllSlicesMakeTheWhole) {
  other_->Send(WithCut(OfOther(Filled(2, {1, 1, 3})), (5 * 3 + 2) * 2 + 1));
  const absl::StatusOr<Tensor> whole =
      exchange_->Gather(PassDirection::kForward, "h.0.mlp", slices_, Filled(1, {1, 3}));
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(whole->floats()[2], 1);
  EXPECT_EQ(whole->floats()[3], 2);
  EXPECT_EQ(Sent().key.cut, (5 * 3 + 2) * 2u);
}

TEST_F(SlicedExchangeTest, AnotherSliceIsRefusedByName) {
  other_->Send(WithCut(OfOther(Filled(2, {1, 2, 3})), (5 * 3 + 1) * 2));
  EXPECT_EQ(exchange_->Scatter(PassDirection::kForward, "h.0.mlp", slices_, {Filled(1)})
                .status()
                .message(),
            "sums, results of h.0.mlp: part 1, from carrier 1, training activation of cut 32, "
            "epoch 1, step 3, microbatch 1: shape [1, 2, 3], want [1, 1, 3]");
}

TEST_F(SlicedExchangeTest, GradientsOfSlicesAddUpAndBeginAgain) {
  std::vector<Parameter> parameters(2);
  parameters[0].gradient = Filled(9, {3});
  parameters[0].of_slices = {Filled(1, {3})};
  parameters[1].gradient = Filled(9, {2});  // of no slices
  Message of_other = WithCut(OfOther(Filled(2, {1, 3})), 4 * 2 + 1);
  of_other.key.phase = PHASE_PART;
  of_other.key.direction = DIRECTION_GRADIENT;
  other_->Send(std::move(of_other));
  MessageKey key = key_;
  key.cut = 4;
  const absl::Status added = exchange_->AddSliceGradients(key, absl::MakeSpan(parameters));
  ASSERT_TRUE(added.ok()) << added;
  EXPECT_EQ(parameters[0].gradient.floats()[1], 3);
  EXPECT_EQ(parameters[0].of_slices[0].floats()[1], 0);
  EXPECT_EQ(parameters[1].gradient.floats()[1], 9);
  EXPECT_EQ(Sent().key.cut, 4 * 2u);
  EXPECT_EQ(exchange_->counts(DIRECTION_GRADIENT).all().train.raw_bytes, 12u);
}

TEST_F(SumExchangeTest, AMessageThatIsNotTheWantedOneIsRefusedByName) {
  Message message = OfOther(Filled(2, {1, 1, 3}));
  EXPECT_EQ(
      Refused(message),
      "sums, results of h.0.mlp: part 1, from carrier 1, training activation of cut 11, epoch "
      "1, step 3, microbatch 1: shape [1, 1, 3], want [1, 2, 3]");
}

TEST_F(SumExchangeTest, AMessageOfAnotherPassEndsTheWait) {
  Message message = OfOther(Filled(2));
  message.key.microbatch = 2;
  EXPECT_THAT(Refused(message),
              HasSubstr("want the training activation of cut 11, epoch 1, step 3, "
                        "microbatch 1: got the training activation of cut 11"));
}

TEST_F(SumExchangeTest, ACodecThatWasNotAgreedOnIsRefused) {
  Message message = OfOther(Filled(2));
  message.codec.kind = CodecKind::kFp16;
  EXPECT_THAT(Refused(message), HasSubstr("part 1, from carrier 1"));
}

TEST_F(SumExchangeTest, ASilentPartIsNamedWhenPatienceEnds) {
  const absl::Status status = Add().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("sums, results of h.0.mlp: sums, from carrier 1: want the training "
                        "activation of cut 11"));
}

TEST_F(SumExchangeTest, NumbersThatCannotBeCodedAreRefusedByName) {
  CodecSpec codec;
  codec.kind = CodecKind::kUniform;
  codec.bits = 8;
  auto exchange = *SumExchange::New(OptionsOf(codec), {Sum()});
  auto [here, there] = NewMemoryLinks(Options(), Options());
  exchange->peers().Attach(1, std::move(here));
  exchange->Begin({PHASE_TRAIN, DIRECTION_UNSPECIFIED, 0, 1, 3, 1}, /*compress=*/true);
  const absl::Status status =
      exchange->Add(PassDirection::kForward, "h.0.mlp", {Filled(INFINITY)}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()), HasSubstr("sums, results of h.0.mlp"));
}

}  // namespace
}  // namespace thinwire
