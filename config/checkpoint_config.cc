#include "config/checkpoint_config.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/hub_cache.h"
#include "base/path.h"
#include "base/stand_in.h"
#include "base/status.h"
#include "config/checkpoint_families.h"
#include "config/checkpoint_rotary.h"
#include "config/checkpoint_window.h"
#include "config/fields.h"
#include "config/specs.h"
#include "data/vocabulary_files.h"
#include "models/options.h"
#include "models/transformer_layers.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Field = google::protobuf::FieldDescriptor;

constexpr char kBertOfClasses[] = "BertForSequenceClassification";

// Returns the names that transformers has for a form of GELU; the first one is written.
const std::vector<const char*>& GeluNames(GeluForm form) {
  static const auto* const tanh =
      new std::vector<const char*>{"gelu_new", "gelu_pytorch_tanh", "gelu_fast"};
  static const auto* const exact = new std::vector<const char*>{"gelu"};
  return form == GeluForm::kTanh ? *tanh : *exact;
}

// Returns nothing for another name.
std::optional<GeluForm> GeluOf(const Json& name) {
  for (const GeluForm form : {GeluForm::kTanh, GeluForm::kExact}) {
    for (const char* known : GeluNames(form)) {
      if (name == known) return form;
    }
  }
  return std::nullopt;
}

// Keys that do not concern the parameters. The checkpoint's values are kept, unless the key is one
// of the family's.
constexpr const char* kTheirs[] = {
    "bos_token_id",   "eos_token_id",       "pad_token_id",      "max_position_embeddings",
    "sliding_window", "use_sliding_window", "max_window_layers", "layer_types"};

// Padding of a vocabulary is at most what rounding up to a multiple of this number adds, and for
// small vocabularies less than their size.
constexpr int64_t kPaddedBelow = 1024;

// Returns the path on this machine, where a name in the hub may stand for a folder of its cache.
std::string ConfigPath(const Experiment& experiment) {
  const absl::StatusOr<std::string> folder = HubFolderOr(WithHome(experiment.init()));
  return (folder.ok() ? *folder : experiment.init()) + "/config.json";
}

absl::Status Refused(const Experiment& experiment, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("init: ", ConfigPath(experiment), ": ", what));
}

// Does the same for an error that names the file already.
absl::Status Refused(const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat("init: ", status.message()));
}

// Returns whether a folder's weights are packed by bitsandbytes into NF4. They are read as the
// numbers that they stand for, and written as such.
bool IsNF4(const Json& quantization) {
  return quantization.is_object() && quantization.value("quant_method", Json()) == "bitsandbytes" &&
         quantization.value("bnb_4bit_quant_type", Json()) == "nf4";
}

// Reads the config.json of `init`; null if there is none.
absl::StatusOr<Json> ReadConfig(const Experiment& experiment) {
  std::error_code error;
  if (!experiment.has_init() || !fs::exists(ConfigPath(experiment), error)) return Json();
  const std::string path = ConfigPath(experiment);
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return Refused(text.status());
  Json config = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) {
    const absl::Status stands_in = CheckNoStandIn(path, *text);
    return stands_in.ok() ? Refused(experiment, "is no JSON map") : Refused(stands_in);
  }
  const absl::Status status = UniteRotaryKeys(&config);
  if (!status.ok()) return Refused(experiment, std::string(status.message()));
  if (IsNF4(config.value("quantization_config", Json()))) config.erase("quantization_config");
  return config;
}

absl::StatusOr<const CheckpointFamily*> FamilyOf(const Experiment& experiment, const Json& config) {
  const Json type = config.value("model_type", Json());
  std::vector<std::string> types;
  for (const CheckpointFamily& family : CheckpointFamilies()) {
    if (type == family.type) return &family;
    types.push_back(Json(family.type).dump());
  }
  return Refused(experiment, absl::StrCat("model_type is ", type.dump(), ", want one of ",
                                          absl::StrJoin(types, ", ")));
}

Json ValueOf(const Json& config, const CheckpointKey& key) {
  return config.value(key.key, key.absent);
}

// Sets one absent field to the value in config.json.
absl::Status Fill(const Experiment& experiment, const CheckpointKey& key, const Json& value,
                  ModelConfig* model) {
  const Field* field = FieldOf(*model, key.field);
  const google::protobuf::Reflection* reflection = model->GetReflection();
  const auto wants = [&](const char* what) {
    return Refused(experiment, absl::StrCat(key.key, " is ", value.dump(), ", want ", what));
  };
  switch (field->cpp_type()) {
    case Field::CPPTYPE_BOOL:
      if (!value.is_boolean()) return wants("true or false");
      reflection->SetBool(model, field, value.get<bool>());
      return absl::OkStatus();
    case Field::CPPTYPE_DOUBLE:
      if (!value.is_number()) return wants("a number");
      reflection->SetDouble(model, field, value.get<double>());
      return absl::OkStatus();
    case Field::CPPTYPE_MESSAGE:
      FillScaling(value, model);
      return absl::OkStatus();
    case Field::CPPTYPE_STRING:
      if (key.field == std::string_view("attention_bias")) {
        if (!value.is_boolean()) return wants("true or false");
        model->set_attention_bias(
            Name(value.get<bool>() ? AttentionBias::kAll : AttentionBias::kNone));
        return absl::OkStatus();
      }
      if (!GeluOf(value)) return wants("\"gelu_new\" or \"gelu\"");
      reflection->SetString(model, field, Name(*GeluOf(value)));
      return absl::OkStatus();
    default:
      if (!value.is_number_integer() || value.get<int64_t>() < 0 ||
          value.get<int64_t>() > std::numeric_limits<uint32_t>::max()) {
        return wants("a whole number");
      }
      reflection->SetUInt32(model, field, value.get<uint32_t>());
      return absl::OkStatus();
  }
}

// Returns the value of a key without a field.
Json FixedValueFor(const CheckpointKey& key, const ModelOptions& options) {
  const std::string name = key.key;
  if (name == "num_channels") return options.input[3];
  if (name != "image_size") return key.absent;
  const int64_t height = options.input[1], width = options.input[2];
  return height == width ? Json(height) : Json({height, width});
}

// Returns an option's value as config.json has it.
template <typename T>
Json JsonOf(const T& option) {
  if constexpr (std::is_same_v<T, GeluForm>) {
    return GeluNames(option)[0];
  } else if constexpr (std::is_same_v<T, AttentionBias>) {
    return option == AttentionBias::kAll;
  } else if constexpr (std::is_same_v<T, RopeScaling>) {
    return RopeScalingKey(option);
  } else if constexpr (std::is_enum_v<T>) {
    return Json();
  } else {
    return option;
  }
}

// Returns the value of a key for a model with completed options.
Json ValueFor(const CheckpointKey& key, const ModelOptions& options) {
  if (key.field == nullptr) return FixedValueFor(key, options);
  const std::string field = key.field;
  if (field == "classes") return options.classes;
  Json value;
  VisitParameters(options, [&](const char* name, const auto& is, const auto&) {
    if (field == name) value = JsonOf(is);
  });
  return value == kNoId ? Json() : value;
}

// Adds what a family has besides its keys.
void AddOthers(const ModelOptions& options, Json* config) {
  const auto set_all = [&](const std::vector<const char*>& keys, const Json& value) {
    for (const char* key : keys) (*config)[key] = value;
  };
  switch (options.family) {
    case ModelFamily::kResNet:
      break;
    case ModelFamily::kGpt2:
      set_all({"resid_pdrop", "embd_pdrop", "attn_pdrop"}, options.dropout);
      break;
    case ModelFamily::kLlama:
      set_all({"attention_dropout"}, options.dropout);
      set_all({"max_position_embeddings"}, options.input[1]);
      // Otherwise some types have an id for padding that the vocabulary lacks.
      set_all({"pad_token_id"}, nullptr);
      AddRotaryKeys(options, config);
      AddWindowKeys(options, config);
      break;
    case ModelFamily::kBert:
      if (options.head == BertHead::kClasses) (*config)["architectures"] = {kBertOfClasses};
      [[fallthrough]];
    case ModelFamily::kVit:
      set_all({"hidden_dropout_prob", "attention_probs_dropout_prob"}, options.dropout);
      if (options.family == ModelFamily::kVit || options.head == BertHead::kClasses) {
        set_all({"num_labels"}, options.classes);
      }
      return;
  }
  // Otherwise transformers would use the ids of its own vocabulary.
  set_all({"bos_token_id", "eos_token_id"}, nullptr);
}

Json ConfigOf(const CheckpointFamily& family, const ModelOptions& given) {
  const ModelOptions options = Completed(given);
  Json config = {{"architectures", {family.architecture}}, {"model_type", family.type}};
  for (const CheckpointKey& key : family.keys) {
    if (key.is_written) config[key.key] = ValueFor(key, options);
  }
  AddOthers(options, &config);
  config["torch_dtype"] = "float32";
  return config;
}

// Returns whether both have the same value of a key; null follows from other keys, which `ours`
// spells out.
bool Agree(const CheckpointKey& key, const Json& theirs, const Json& ours, const Json& all_ours) {
  if (key.key == std::string("n_inner") && theirs.is_null()) {
    return ours == 4 * all_ours["n_embd"].get<int64_t>();
  }
  if (key.key == std::string("num_key_value_heads") && theirs.is_null()) {
    return ours == all_ours["num_attention_heads"];
  }
  // transformers has no such key: only the tensors tell.
  if (key.key == std::string("bias") && theirs.is_null()) return true;
  if (key.key == std::string("head_dim") && theirs.is_null()) {
    const int64_t heads = all_ours["num_attention_heads"].get<int64_t>();
    return ours == all_ours["hidden_size"].get<int64_t>() / heads;
  }
  if (key.key == std::string("pad_token_id")) return true;  // no parameter depends on it
  if (key.key == std::string("activation_function")) return GeluOf(theirs) == GeluOf(ours);
  return theirs == ours;
}

// Keeps the names of classes, which say how many there are, if they are as many; otherwise the
// number alone.
void KeepNames(int64_t classes, Json* config) {
  const Json names = config->value("id2label", Json());
  if (static_cast<int64_t>(names.size()) == classes) {
    config->erase("num_labels");
  } else {
    config->erase("id2label");
    config->erase("label2id");
  }
}

// Sets what is absent about a BERT's head: its kind, and the classes of a masked one.
void FillHead(const Json& config, ModelConfig* model) {
  const Json architectures = config.value("architectures", Json::array());
  const bool has_classes =
      std::find(architectures.begin(), architectures.end(), kBertOfClasses) != architectures.end();
  if (!model->has_head()) {
    model->set_head(Name(has_classes ? BertHead::kClasses : BertHead::kMasked));
  }
  const bool is_masked = model->head() == Name(BertHead::kMasked);
  if (is_masked && !model->has_classes()) model->set_classes(model->vocabulary());
}

}  // namespace

absl::Status FillFromCheckpoint(Experiment* experiment) {
  ASSIGN_OR_RETURN(const Json config, ReadConfig(*experiment));
  ModelConfig* model = experiment->mutable_model();
  if (config.is_null()) {
    if (!experiment->has_init() || model->has_name()) return absl::OkStatus();
    return Refused(*experiment, "is not there, and the experiment has no model.name");
  }
  if (model->has_name()) {
    // The user has named another model; CheckAgainstCheckpoint reports a contradiction.
    if (config.value("model_type", Json()) != model->name()) return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const CheckpointFamily* const family, FamilyOf(*experiment, config));
  model->set_name(family->type);
  for (const CheckpointKey& key : family->keys) {
    if (key.field == nullptr || IsSet(*model, key.field)) continue;
    const Json value = ValueOf(config, key);
    if (!value.is_null()) RETURN_IF_ERROR(Fill(*experiment, key, value, model));
  }
  if (family->family == ModelFamily::kBert) FillHead(config, model);
  if (family->family != ModelFamily::kLlama) return absl::OkStatus();
  const absl::Status window = FillWindow(config, model);
  return window.ok() ? window : Refused(*experiment, std::string(window.message()));
}

absl::Status CheckAgainstCheckpoint(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const Json theirs, ReadConfig(experiment));
  if (theirs.is_null()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::optional<ModelOptions> options, ModelOptionsFrom(experiment));
  const CheckpointFamily* const family = options ? CheckpointFamilyOf(*options) : nullptr;
  if (family == nullptr) return absl::OkStatus();  // only its tensors can tell whether it fits
  if (theirs.value("model_type", Json()) != family->type) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model.name: ", experiment.model().name(), ", but init: ", ConfigPath(experiment),
        ": model_type is ", theirs.value("model_type", Json()).dump()));
  }
  const Json ours = ConfigOf(*family, *options);
  for (const CheckpointKey& key : family->keys) {
    const Json value = ValueOf(theirs, key), own = key.is_written ? ours[key.key] : key.absent;
    if (Agree(key, value, own, ours)) continue;
    if (key.field == nullptr) {
      return Refused(experiment, absl::StrCat(key.key, " is ", value.dump(), ", want ", own.dump(),
                                              ", which is all that models here know"));
    }
    return absl::InvalidArgumentError(absl::StrCat("model.", key.field, ": ", own.dump(),
                                                   ", but init: ", ConfigPath(experiment), ": ",
                                                   key.key, " is ", value.dump()));
  }
  const absl::Status window = CheckWindow(theirs, *options);
  return window.ok() ? window : Refused(experiment, std::string(window.message()));
}

absl::Status CheckIdsOfCheckpoint(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const Json config, ReadConfig(experiment));
  ASSIGN_OR_RETURN(const DatasetInfo data, DatasetOf(experiment.data()));
  if (config.is_null() || !data.is_text) return absl::OkStatus();
  std::error_code error;
  if (fs::exists(absl::StrCat(experiment.init(), "/", kVocabularyFile), error)) {
    return absl::OkStatus();
  }
  const ModelConfig& model = experiment.model();
  const char* const field = model.has_vocabulary() ? "vocabulary" : "classes";
  const int64_t ids = model.has_vocabulary() ? model.vocabulary() : model.classes();
  if (ids - data.vocabulary < std::min(data.vocabulary, kPaddedBelow)) return absl::OkStatus();
  const std::string tokens =
      experiment.data().has_tokens()
          ? absl::StrCat("data.tokens: ", experiment.data().tokens(), " of ", data.name)
          : absl::StrCat("data ", data.name);
  return Refused(experiment,
                 absl::StrCat("vocab_size is ", ids, ", but ", tokens, " makes ", data.vocabulary,
                              " ids: want the tokens that the checkpoint was trained on "
                              "(data.tokens, data.vocabulary), or, if the others are padding, "
                              "model.",
                              field, ": ", ids));
}

absl::StatusOr<std::string> CheckpointConfig(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const std::optional<ModelOptions> options, ModelOptionsFrom(experiment));
  const CheckpointFamily* const family = options ? CheckpointFamilyOf(*options) : nullptr;
  if (family == nullptr) return std::string();
  ASSIGN_OR_RETURN(Json config, ReadConfig(experiment));
  if (config.is_null()) config = Json::object();
  const Json ours = ConfigOf(*family, *options);
  for (const auto& [key, value] : ours.items()) {
    const auto is_key = [&name = key](const char* other) { return name == other; };
    const bool is_theirs = std::any_of(std::begin(kTheirs), std::end(kTheirs), is_key) &&
                           std::none_of(family->keys.begin(), family->keys.end(),
                                        [&](const CheckpointKey& own) { return is_key(own.key); });
    if (!is_theirs || !config.contains(key)) config[key] = value;
  }
  if (config.contains("num_labels")) KeepNames(options->classes, &config);
  // Newer name of torch_dtype.
  if (config.contains("dtype")) config["dtype"] = config["torch_dtype"];
  return config.dump(2) + "\n";
}

}  // namespace thinwire
