#include "config/choices.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "config/checks.h"
#include "config/yaml_message.h"
#include "google/protobuf/descriptor.h"
#include "proto/experiment.pb.h"

namespace thinwire {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Names = std::vector<std::string>;

struct Alternative {
  std::string name;
  Names fields;          // that belong to it
  const char* defaults;  // YAML of some of them
  Names required;
};

struct Choice {
  std::string field;
  std::string absent;  // what an absent choice means; empty: it is required
  Names common;        // fields that belong to every alternative
  std::vector<Alternative> alternatives;
};

// By the message's name.
const std::map<std::string, Choice>& Choices() {
  static const auto* const choices = new std::map<std::string, Choice>{
      {"DirectionConfig",
       {"codec",
        "none",
        {"feedback", "lossless", "on_nonfinite", "epilogue_only"},
        {{"none", {"support"}, "{}", {}},
         {"fp16", {"support"}, "{}", {}},
         {"bf16", {"support"}, "{}", {}},
         {"fp8", {"format", "support"}, "{format: e4m3}", {}},
         {"uniform",
          {"bits", "range", "scope", "group", "rounding", "zero", "rotation", "rotation_block",
           "support", "level"},
          "{bits: 8, range: min_max, scope: tensor, rounding: nearest, zero: free}",
          {}},
         {"topk",
          {"ratio", "k", "scope", "values", "count", "pad", "bits", "range", "rounding", "zero",
           "group", "indices", "support", "level"},
          "{values: fp32}",
          {}},
         {"randomk",
          {"ratio", "k", "scope", "values", "count", "bits", "range", "rounding", "zero", "group",
           "unbiased", "support", "level"},
          "{scope: sample, values: fp32, count: ceil}",
          {}},
         {"threshold",
          {"threshold", "relative_to", "values", "bits", "range", "rounding", "zero", "group",
           "support"},
          "{relative_to: absolute, values: fp32}",
          {"threshold"}},
         {"blockwise8", {"block", "support"}, "{block: 4096}", {}},
         {"low_rank", {"rank", "per_sample"}, "{}", {"rank"}},
         {"plugin", {"plugin", "parameters"}, "{parameters: '{}'}", {"plugin"}}}}},
      {"FeedbackConfig",
       {"kind",
        "none",
        {},
        {{"none", {}, "{}", {}},
         {"ef",
          {"key", "store", "decay", "on_full", "limit_bytes", "dir"},
          "{key: slot, store: fp32, decay: 1, on_full: error, limit_bytes: 0}",
          {}},
         {"lazy",
          {"key", "store", "decay", "on_full", "limit_bytes", "dir"},
          "{key: stream, store: fp32, decay: 1, on_full: error, limit_bytes: 0}",
          {}},
         {"ef21",
          {"key", "init", "store", "on_full", "limit_bytes", "dir", "digest_every"},
          "{key: slot, init: zero, store: fp32, on_full: error, limit_bytes: 0, digest_every: 10}",
          {}},
         {"aq_sgd",
          {"key", "init", "store", "on_full", "limit_bytes", "dir", "digest_every"},
          "{key: sample, init: exact, store: fp32, on_full: error, limit_bytes: 0, "
          "digest_every: 10}",
          {}},
         {"ef_mixed_a",
          {"key", "store", "decay", "on_full", "limit_bytes", "dir"},
          "{key: slot, store: fp32, decay: 1, on_full: error, limit_bytes: 0}",
          {}},
         {"ef_mixed_b",
          {"key", "store", "decay", "on_full", "limit_bytes", "dir"},
          "{key: slot, store: fp32, decay: 1, on_full: error, limit_bytes: 0}",
          {}}}}},
      {"BottleneckConfig",
       {"kind",
        "linear",
        {},
        {{"none", {}, "{}", {}},
         {"linear", {"width"}, "{}", {"width"}},
         {"layer_norm", {"width"}, "{}", {"width"}},
         {"maxout", {"group"}, "{}", {"group"}}}}},
      {"LrScheduleConfig",
       {"name",
        "constant",
        {"warmup_steps"},
        {{"constant", {}, "{}", {}},
         {"cosine", {"t_max", "min_lr"}, "{min_lr: 0}", {}},
         {"step", {"step_size", "gamma"}, "{gamma: 0.1}", {"step_size"}},
         {"linear", {"t_max", "min_lr"}, "{min_lr: 0}", {}}}}},
      {"OptimizerConfig",
       {"name",
        "sgd",
        {"lr"},
        {{"sgd",
          {"momentum", "weight_decay", "nesterov"},
          "{momentum: 0, weight_decay: 0, nesterov: false}",
          {}}}}},
      {"ModelConfig",
       {"name",
        "",
        {"classes"},
        {{"resnet8", {"width"}, "{width: 16}", {}},
         {"resnet18", {"width"}, "{width: 64}", {}},
         {"resnet20", {"width"}, "{width: 16}", {}},
         {"resnet34", {"width"}, "{width: 64}", {}},
         {"custom", {"blocks"}, "{}", {"blocks"}}}}},
      {"LayerConfig",
       {"kind",
        "",
        {"name"},
        {{"conv",
          {"out", "kernel", "stride", "padding", "bias"},
          "{stride: 1, padding: 0, bias: true}",
          {"name", "out", "kernel"}},
         {"batch_norm", {}, "{}", {"name"}},
         {"layer_norm", {}, "{}", {"name"}},
         {"relu", {}, "{}", {}},
         {"max_pool", {"kernel", "stride", "padding"}, "{padding: 0}", {"kernel"}},
         {"maxout", {"group"}, "{}", {"group"}},
         {"global_avg_pool", {}, "{}", {}},
         {"flatten", {}, "{}", {}},
         {"linear", {"out", "bias"}, "{bias: true}", {"name", "out"}},
         {"residual", {"body", "shortcut"}, "{}", {"body"}}}}},
  };
  return *choices;
}

const Choice& ChoiceOf(const Message& message) {
  const auto found = Choices().find(message.GetDescriptor()->name());
  assert(found != Choices().end());
  return found->second;
}

const FieldDescriptor* Field(const Message& message, const std::string& name) {
  const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(name);
  assert(field != nullptr);
  return field;
}

bool IsSet(const Message& message, const FieldDescriptor* field) {
  return field->is_repeated() ? message.GetReflection()->FieldSize(message, field) > 0
                              : message.GetReflection()->HasField(message, field);
}

bool IsSet(const Message& message, const std::string& name) {
  return IsSet(message, Field(message, name));
}

std::string Chosen(const Message& message, const Choice& choice) {
  if (!IsSet(message, choice.field)) return choice.absent;
  return message.GetReflection()->GetString(message, Field(message, choice.field));
}

absl::StatusOr<const Alternative*> Find(const std::string& path, const Choice& choice,
                                        const std::string& chosen) {
  Names known;
  for (const Alternative& alternative : choice.alternatives) {
    if (alternative.name == chosen) return &alternative;
    known.push_back(alternative.name);
  }
  const std::string field = absl::StrCat(path, ".", choice.field);
  if (!chosen.empty()) return UnknownName(field, choice.field, chosen, known);
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": is required; known: ", absl::StrJoin(known, ", ")));
}

bool Contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// What is set must belong to the alternative.
absl::Status CheckBelonging(const std::string& path, const Message& message, const Choice& choice,
                            const Alternative& chosen) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    const std::string& name = field->name();
    if (!IsSet(message, field) || name == choice.field || Contains(choice.common, name) ||
        Contains(chosen.fields, name)) {
      continue;
    }
    Names takes = chosen.fields;
    takes.insert(takes.end(), choice.common.begin(), choice.common.end());
    return absl::InvalidArgumentError(
        absl::StrCat(path, ".", name, ": does not belong to ", choice.field, " ", chosen.name,
                     ", which takes ", takes.empty() ? "nothing" : absl::StrJoin(takes, ", ")));
  }
  return absl::OkStatus();
}

// One way of choosing the level replaces the other, and one table the other.
void ForgetReplacedLevel(const DirectionConfig& next, DirectionConfig* direction) {
  const bool has_table = !next.level().by_epoch().empty();
  const bool had_table = !direction->level().by_epoch().empty();
  if (has_table || (next.level().has_target_error() && had_table)) direction->clear_level();
}

}  // namespace

absl::Status ResolveChoice(const std::string& path, Message* message) {
  const Choice& choice = ChoiceOf(*message);
  const std::string name = Chosen(*message, choice);
  ASSIGN_OR_RETURN(const Alternative* chosen, Find(path, choice, name));
  RETURN_IF_ERROR(CheckBelonging(path, *message, choice, *chosen));
  for (const std::string& required : chosen->required) {
    if (!IsSet(*message, required)) {
      return absl::InvalidArgumentError(absl::StrCat(path, ".", required, ": is required with ",
                                                     choice.field, " ", chosen->name));
    }
  }
  const std::unique_ptr<Message> filled(message->New());
  RETURN_IF_ERROR(MergeYaml(chosen->defaults, "defaults", filled.get()));
  filled->GetReflection()->SetString(filled.get(), Field(*filled, choice.field), name);
  filled->MergeFrom(*message);
  message->CopyFrom(*filled);
  return absl::OkStatus();
}

void ForgetReplaced(const Message& next, Message* message) {
  const Choice& choice = ChoiceOf(*message);
  const google::protobuf::Reflection* reflection = message->GetReflection();
  if (IsSet(*message, choice.field) && IsSet(next, choice.field) &&
      Chosen(*message, choice) != Chosen(next, choice)) {
    for (const Alternative& alternative : choice.alternatives) {
      for (const std::string& name : alternative.fields) {
        reflection->ClearField(message, Field(*message, name));
      }
    }
  }
  if (message->GetDescriptor()->name() != "DirectionConfig") return;
  const FieldDescriptor* feedback = Field(*message, "feedback");
  if (IsSet(*message, feedback) && IsSet(next, feedback)) {
    ForgetReplaced(next.GetReflection()->GetMessage(next, feedback),
                   reflection->MutableMessage(message, feedback));
  }
  ForgetReplacedLevel(static_cast<const DirectionConfig&>(next),
                      static_cast<DirectionConfig*>(message));
  if (IsSet(next, "k") && !IsSet(next, "ratio")) {
    reflection->ClearField(message, Field(*message, "ratio"));
  }
  if (IsSet(next, "ratio") && !IsSet(next, "k")) {
    reflection->ClearField(message, Field(*message, "k"));
  }
}

}  // namespace thinwire
