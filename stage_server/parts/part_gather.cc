#include "stage_server/parts/part_gather.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace thinwire {
namespace {

// Returns a message of these bytes, which are whole numbers of fp32.
template <typename Number>
Message MessageOf(MessageKey key, std::vector<Number> numbers) {
  Message message;
  key.phase = PHASE_PART;
  key.direction = DIRECTION_GRADIENT;
  message.key = key;
  const auto owner = std::make_shared<const std::vector<Number>>(std::move(numbers));
  const size_t bytes = owner->size() * sizeof(Number);
  message.shape = {1, static_cast<int64_t>(bytes / sizeof(float))};
  message.payload = {owner, {reinterpret_cast<const uint8_t*>(owner->data()), bytes}};
  return message;
}

// Checks that a message is of as many fp32, as they are.
absl::Status CheckNumbers(const Message& message, int64_t want) {
  const Shape shape = {1, want};
  const bool is_good = message.dtype == DType::kF32 && message.codec.is_exact() &&
                       message.shape == shape &&
                       message.payload.bytes.size() == static_cast<size_t>(want) * sizeof(float);
  if (is_good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "parts, ", message.key.ToString(), ": ", Name(message.dtype), " ", message.shape.ToString(),
      " with codec ", message.codec.ToString(), " in ", message.payload.bytes.size(),
      " bytes, want fp32 ", shape.ToString(), " as they are"));
}

// Returns the key of the message with a part's tensor of that number, in the gathering `round`.
MessageKey KeyOf(uint32_t number, int part, uint64_t round) {
  return {PHASE_PART,
          DIRECTION_GRADIENT,
          number,
          /*epoch=*/1,
          round,
          static_cast<uint32_t>(part)};
}

// Returns the floats of a message that CheckNumbers has let through.
absl::Span<const float> FloatsOf(const Message& message) {
  return {reinterpret_cast<const float*>(message.payload.bytes.data()),
          message.payload.bytes.size() / sizeof(float)};
}

// Returns the gradients of one of the slices here, one parameter after the other.
absl::StatusOr<std::vector<float>> GradientsOfSlice(absl::Span<Parameter> parameters,
                                                    size_t group) {
  std::vector<float> all;
  for (const Parameter& parameter : parameters) {
    if (parameter.of_slices.empty()) continue;
    const Tensor& gradient = parameter.of_slices[group];
    const size_t before = all.size();
    all.resize(before + static_cast<size_t>(gradient.elements()));
    RETURN_IF_ERROR(ToStatus(
        gradient.device()->CopyToHost(all.data() + before, gradient.data(), gradient.bytes())));
  }
  return all;
}

// Takes the gradients from a sum over slices, and clears those of the slices.
absl::Status TakeGradients(const std::vector<float>& sum, absl::Span<Parameter> parameters,
                           Ops* ops) {
  const float* next = sum.data();
  for (const Parameter& parameter : parameters) {
    if (parameter.of_slices.empty()) continue;
    const Tensor& gradient = parameter.gradient;
    RETURN_IF_ERROR(
        ToStatus(gradient.device()->CopyFromHost(gradient.data(), next, gradient.bytes())));
    next += gradient.elements();
    for (const Tensor& slice : parameter.of_slices) {
      RETURN_IF_ERROR(ToStatus(ops->Zero(Floats(slice), slice.elements())));
    }
  }
  return absl::OkStatus();
}

std::vector<ParameterSpec> OfPart(const std::vector<ParameterSpec>& parameters, int part) {
  std::vector<ParameterSpec> all;
  for (const ParameterSpec& one : parameters) {
    if (one.slice.part == part) all.push_back(one);
  }
  return all;
}

}  // namespace

absl::StatusOr<std::vector<double>> PartGather::All(const MessageKey& key,
                                                    const std::vector<ParameterSpec>& parameters,
                                                    const std::map<std::string, double>& own) {
  std::vector<double> sent;
  for (const ParameterSpec& parameter : parameters) {
    if (IsAt(peers_->carrier(), parameter)) sent.push_back(own.at(parameter.name));
  }
  peers_->SendToAll(MessageOf(key, std::move(sent)));
  std::map<std::string, double> all = own;
  for (int place = 0; place < peers_->carriers(); ++place) {
    if (place == peers_->carrier()) continue;
    std::vector<std::string> names;
    for (const ParameterSpec& parameter : parameters) {
      if (IsAt(place, parameter)) names.push_back(parameter.name);
    }
    MessageKey wanted = key;
    wanted.phase = PHASE_PART;
    wanted.direction = DIRECTION_GRADIENT;
    ASSIGN_OR_RETURN(const Message message, peers_->Receive(place, wanted));
    std::vector<double> numbers(names.size());
    RETURN_IF_ERROR(CheckNumbers(message, static_cast<int64_t>(2 * numbers.size())));
    if (numbers.empty()) continue;  // nothing of the segment is divided
    std::memcpy(numbers.data(), message.payload.bytes.data(), message.payload.bytes.size());
    for (size_t i = 0; i < names.size(); ++i) {
      if (!(numbers[i] >= 0)) {
        return absl::OutOfRangeError(
            absl::StrCat("with the gradient of ", names[i], " the squares add up to ", numbers[i]));
      }
      all[names[i]] = numbers[i];
    }
  }
  std::vector<double> in_order;
  for (const ParameterSpec& parameter : parameters) in_order.push_back(all.at(parameter.name));
  return in_order;
}

absl::StatusOr<std::vector<MessageHeader>> PartGather::AddSlices(const MessageKey& key,
                                                                 absl::Span<Parameter> parameters,
                                                                 Ops* ops) {
  const bool has_some =
      std::any_of(parameters.begin(), parameters.end(),
                  [](const Parameter& parameter) { return !parameter.of_slices.empty(); });
  std::vector<MessageHeader> sent;
  if (!has_some) return sent;
  const ReplicaRange carried = CarriedAt(peers_->carrier());
  std::vector<Message> own;
  for (int part = carried.first; part < carried.end; ++part) {
    MessageKey of_part = key;
    of_part.cut = key.cut * static_cast<uint32_t>(parts_) + static_cast<uint32_t>(part);
    ASSIGN_OR_RETURN(std::vector<float> gradients,
                     GradientsOfSlice(parameters, static_cast<size_t>(part - carried.first)));
    own.push_back(MessageOf(of_part, std::move(gradients)));
    peers_->SendToAll(own.back());
    sent.push_back(own.back());
  }
  ASSIGN_OR_RETURN(const std::vector<float> sum, SumOfParts(own));
  RETURN_IF_ERROR(TakeGradients(sum, parameters, ops));
  return sent;
}

absl::StatusOr<std::vector<float>> PartGather::SumOfParts(const std::vector<Message>& own) {
  const ReplicaRange carried = CarriedAt(peers_->carrier());
  MessageKey key = own.front().key;
  key.cut -= static_cast<uint32_t>(carried.first);
  std::vector<float> sum(FloatsOf(own.front()).size());
  for (int part = 0; part < parts_; ++part, ++key.cut) {
    Message message;
    if (carried.has(part)) {
      message = own[static_cast<size_t>(part - carried.first)];
    } else {
      const int place = CarrierOf(part, peers_->carriers(), parts_);
      ASSIGN_OR_RETURN(message, peers_->Receive(place, key));
      RETURN_IF_ERROR(CheckNumbers(message, static_cast<int64_t>(sum.size())));
    }
    const absl::Span<const float> addend = FloatsOf(message);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += addend[i];
  }
  return sum;
}

// All machines have like tensors, in the same order: a part's are numbered as those of part 0.
absl::Status PartGather::ToFirst(const std::vector<ParameterSpec>& parameters,
                                 std::vector<Parameter>* tensors) {
  ++round_;
  if (peers_->carrier() > 0) {
    RETURN_IF_ERROR(SendAll(*tensors));
    tensors->clear();
    return absl::OkStatus();
  }
  const std::vector<ParameterSpec> first = OfPart(parameters, 0);
  std::vector<Parameter> others;
  for (int part = CarriedAt(0).end; part < parts_; ++part) {
    const std::vector<ParameterSpec> specs = OfPart(parameters, part);
    uint32_t number = 0;
    for (const Parameter& one : *tensors) {
      if (one.spec.slice.part != 0) continue;
      size_t place = 0;
      while (first[place].name != one.spec.name) ++place;
      ASSIGN_OR_RETURN(others.emplace_back(),
                       Receive(specs[place], number++, one.value.device()->host()));
    }
  }
  std::move(others.begin(), others.end(), std::back_inserter(*tensors));
  return absl::OkStatus();
}

absl::Status PartGather::SendAll(const std::vector<Parameter>& tensors) const {
  const ReplicaRange carried = CarriedAt(peers_->carrier());
  std::map<int, uint32_t> numbers;  // by part
  for (int part = carried.first; part < carried.end; ++part) {
    for (const Parameter& one : tensors) {
      if (one.spec.slice.part != part) continue;
      std::vector<float> values(static_cast<size_t>(one.value.elements()));
      RETURN_IF_ERROR(ToStatus(
          one.value.device()->CopyToHost(values.data(), one.value.data(), one.value.bytes())));
      peers_->Send(0, MessageOf(KeyOf(numbers[part]++, part, round_), std::move(values)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Parameter> PartGather::Receive(const ParameterSpec& spec, uint32_t number,
                                              Device* host) {
  const int place = CarrierOf(spec.slice.part, peers_->carriers(), parts_);
  ASSIGN_OR_RETURN(const Message message,
                   peers_->Receive(place, KeyOf(number, spec.slice.part, round_)));
  Parameter other;
  other.spec = spec;
  ASSIGN_OR_RETURN(other.value, Tensor::Allocate(host, DType::kF32, spec.shape));
  RETURN_IF_ERROR(CheckNumbers(message, other.value.elements()));
  std::memcpy(other.value.data(), message.payload.bytes.data(), message.payload.bytes.size());
  return other;
}

}  // namespace thinwire
