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
#include "base/stand_in.h"
#include "base/status.h"
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

// A key of config.json and the matching field of `model`.
struct Key {
  const char* key;
  const char* field;  // null: none, as models here have no other value than `absent`
  Json absent;        // value that transformers assumes if the key is absent
};

// Names that transformers has for a family and its parts. `null` follows from other keys.
struct Family {
  ModelFamily family;
  const char* type;          // also our name of the family's model of any size
  const char* architecture;  // of BERT with head kMasked
  std::vector<Key> keys;
};

constexpr char kBertOfClasses[] = "BertForSequenceClassification";

const std::vector<Family>& Families() {
  static const auto* const families =
      new std::vector<Family>{{ModelFamily::kGpt2,
                               "gpt2",
                               "GPT2LMHeadModel",
                               {{"vocab_size", "classes", 50257},
                                {"n_positions", "context", 1024},
                                {"n_embd", "width", 768},
                                {"n_layer", "layers", 12},
                                {"n_head", "heads", 12},
                                {"n_inner", "hidden", nullptr},
                                {"activation_function", "gelu", "gelu_new"},
                                {"layer_norm_epsilon", "epsilon", 1e-5},
                                {"tie_word_embeddings", "tied", true},
                                {"bias", "bias", nullptr},
                                {"scale_attn_weights", nullptr, true},
                                {"scale_attn_by_inverse_layer_idx", nullptr, false},
                                {"add_cross_attention", nullptr, false}}},
                              {ModelFamily::kLlama,
                               "llama",
                               "LlamaForCausalLM",
                               {{"vocab_size", "classes", 32000},
                                {"hidden_size", "width", 4096},
                                {"intermediate_size", "hidden", 11008},
                                {"num_hidden_layers", "layers", 32},
                                {"num_attention_heads", "heads", 32},
                                {"num_key_value_heads", "kv_heads", nullptr},
                                {"head_dim", nullptr, nullptr},
                                {"rms_norm_eps", "epsilon", 1e-6},
                                {"rope_theta", "rope_theta", 10000.0},
                                {"tie_word_embeddings", "tied", false},
                                {"hidden_act", nullptr, "silu"},
                                {"rope_scaling", nullptr, nullptr},
                                {"attention_bias", nullptr, false},
                                {"mlp_bias", nullptr, false}}},
                              {ModelFamily::kBert,
                               "bert",
                               "BertForMaskedLM",
                               {{"vocab_size", "vocabulary", 30522},
                                {"max_position_embeddings", "context", 512},
                                {"type_vocab_size", "types", 2},
                                {"hidden_size", "width", 768},
                                {"intermediate_size", "hidden", 3072},
                                {"num_hidden_layers", "layers", 12},
                                {"num_attention_heads", "heads", 12},
                                {"layer_norm_eps", "epsilon", 1e-12},
                                {"pad_token_id", "pad", 0},
                                {"tie_word_embeddings", "tied", true},
                                {"hidden_act", nullptr, "gelu"},
                                {"position_embedding_type", nullptr, "absolute"},
                                {"is_decoder", nullptr, false}}},
                              {ModelFamily::kVit,
                               "vit",
                               "ViTForImageClassification",
                               {{"hidden_size", "width", 768},
                                {"intermediate_size", "hidden", 3072},
                                {"num_hidden_layers", "layers", 12},
                                {"num_attention_heads", "heads", 12},
                                {"layer_norm_eps", "epsilon", 1e-12},
                                {"patch_size", "patch", 16},
                                {"image_size", nullptr, 224},
                                {"num_channels", nullptr, 3},
                                {"qkv_bias", nullptr, true},
                                {"hidden_act", nullptr, "gelu"}}}};
  return *families;
}

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

// Keys that do not concern the parameters, so the checkpoint's values are kept.
constexpr const char* kTheirs[] = {"bos_token_id", "eos_token_id", "max_position_embeddings"};

// Padding of a vocabulary is at most what rounding up to a multiple of this number adds, and for
// small vocabularies less than their size.
constexpr int64_t kPaddedBelow = 1024;

std::string ConfigPath(const Experiment& experiment) { return experiment.init() + "/config.json"; }

absl::Status Refused(const Experiment& experiment, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("init: ", ConfigPath(experiment), ": ", what));
}

// Does the same for an error that names the file already.
absl::Status Refused(const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat("init: ", status.message()));
}

// Copies the map of that key to `rope_theta` and `rope_scaling`. In transformers 5 it has all about
// the rotary embedding. In version 4 it has only the scaling, which is null if there is none.
void TakeRope(const char* key, Json* config) {
  const Json rope = config->value(key, Json());
  if (!rope.is_object()) return;
  const Json kind = rope.value("rope_type", rope.value("type", Json("default")));
  const bool is_by_layer =
      std::any_of(rope.begin(), rope.end(), [](const Json& value) { return value.is_object(); });
  if (rope.contains("rope_theta")) (*config)["rope_theta"] = rope["rope_theta"];
  if (kind != "default" || is_by_layer) {
    (*config)["rope_scaling"] = rope;
  } else if (key == std::string_view("rope_scaling")) {
    (*config)[key] = nullptr;
  }
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
  for (const char* key : {"rope_parameters", "rope_scaling"}) TakeRope(key, &config);
  return config;
}

absl::StatusOr<const Family*> FamilyOf(const Experiment& experiment, const Json& config) {
  const Json type = config.value("model_type", Json());
  for (const Family& family : Families()) {
    if (type == family.type) return &family;
  }
  std::vector<std::string> types;
  for (const Family& family : Families()) types.push_back(Json(family.type).dump());
  return Refused(experiment, absl::StrCat("model_type is ", type.dump(), ", want one of ",
                                          absl::StrJoin(types, ", ")));
}

const Family* FamilyOf(const ModelOptions& options) {
  for (const Family& family : Families()) {
    if (family.family == options.family) return &family;
  }
  return nullptr;
}

Json ValueOf(const Json& config, const Key& key) { return config.value(key.key, key.absent); }

// Sets one absent field to the value in config.json.
absl::Status Fill(const Experiment& experiment, const Key& key, const Json& value,
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
    case Field::CPPTYPE_STRING:
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
Json FixedValueFor(const Key& key, const ModelOptions& options) {
  const std::string name = key.key;
  if (name == "head_dim") return options.width / options.heads;
  if (name == "num_channels") return options.input[3];
  if (name != "image_size") return key.absent;
  const int64_t height = options.input[1], width = options.input[2];
  return height == width ? Json(height) : Json({height, width});
}

// Returns the value of a key for a model with completed options.
Json ValueFor(const Key& key, const ModelOptions& options) {
  if (key.field == nullptr) return FixedValueFor(key, options);
  const std::string field = key.field;
  if (field == "classes") return options.classes;
  Json value;
  VisitParameters(options, [&](const char* name, const auto& is, const auto&) {
    if (field != name) return;
    if constexpr (std::is_enum_v<std::decay_t<decltype(is)>>) {
      if constexpr (std::is_same_v<std::decay_t<decltype(is)>, GeluForm>) value = GeluNames(is)[0];
    } else {
      value = is;
    }
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

Json ConfigOf(const Family& family, const ModelOptions& given) {
  const ModelOptions options = Completed(given);
  Json config = {{"architectures", {family.architecture}}, {"model_type", family.type}};
  for (const Key& key : family.keys) config[key.key] = ValueFor(key, options);
  AddOthers(options, &config);
  config["torch_dtype"] = "float32";
  return config;
}

// Returns whether both have the same value of a key; null follows from other keys, which `ours`
// spells out.
bool Agree(const Key& key, const Json& theirs, const Json& ours, const Json& all_ours) {
  if (key.key == std::string("n_inner") && theirs.is_null()) {
    return ours == 4 * all_ours["n_embd"].get<int64_t>();
  }
  if (key.key == std::string("num_key_value_heads") && theirs.is_null()) {
    return ours == all_ours["num_attention_heads"];
  }
  // transformers has no such key: only the tensors tell.
  if (key.key == std::string("bias") && theirs.is_null()) return true;
  if (key.key == std::string("head_dim") && theirs.is_null()) return true;
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
  ASSIGN_OR_RETURN(const Family* const family, FamilyOf(*experiment, config));
  model->set_name(family->type);
  for (const Key& key : family->keys) {
    if (key.field == nullptr || IsSet(*model, key.field)) continue;
    const Json value = ValueOf(config, key);
    if (!value.is_null()) RETURN_IF_ERROR(Fill(*experiment, key, value, model));
  }
  if (family->family == ModelFamily::kBert) FillHead(config, model);
  return absl::OkStatus();
}

absl::Status CheckAgainstCheckpoint(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const Json theirs, ReadConfig(experiment));
  if (theirs.is_null()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::optional<ModelOptions> options, ModelOptionsFrom(experiment));
  const Family* const family = options ? FamilyOf(*options) : nullptr;
  if (family == nullptr) return absl::OkStatus();  // only its tensors can tell whether it fits
  if (theirs.value("model_type", Json()) != family->type) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model.name: ", experiment.model().name(), ", but init: ", ConfigPath(experiment),
        ": model_type is ", theirs.value("model_type", Json()).dump()));
  }
  const Json ours = ConfigOf(*family, *options);
  for (const Key& key : family->keys) {
    const Json value = ValueOf(theirs, key), own = ours[key.key];
    if (Agree(key, value, own, ours)) continue;
    if (key.field == nullptr) {
      return Refused(experiment, absl::StrCat(key.key, " is ", value.dump(), ", want ", own.dump(),
                                              ", which is all that models here know"));
    }
    return absl::InvalidArgumentError(absl::StrCat("model.", key.field, ": ", own.dump(),
                                                   ", but init: ", ConfigPath(experiment), ": ",
                                                   key.key, " is ", value.dump()));
  }
  return absl::OkStatus();
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
  const Family* const family = options ? FamilyOf(*options) : nullptr;
  if (family == nullptr) return std::string();
  ASSIGN_OR_RETURN(Json config, ReadConfig(experiment));
  if (config.is_null()) config = Json::object();
  const Json ours = ConfigOf(*family, *options);
  for (const auto& [key, value] : ours.items()) {
    const bool is_theirs = std::find(std::begin(kTheirs), std::end(kTheirs),
                                     std::string_view(key)) != std::end(kTheirs);
    if (!is_theirs || !config.contains(key)) config[key] = value;
  }
  if (config.contains("num_labels")) KeepNames(options->classes, &config);
  // Newer name of torch_dtype.
  if (config.contains("dtype")) config["dtype"] = config["torch_dtype"];
  return config.dump(2) + "\n";
}

}  // namespace thinwire
