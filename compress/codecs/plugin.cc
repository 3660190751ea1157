#include "compress/codecs/plugin.h"

#include <dlfcn.h>

#include <cctype>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "compress/spec_text.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

using nlohmann::json;

template <typename... Parts>
absl::Status Refuse(const std::string& path, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("codec plug-in ", path, ": ", parts...));
}

bool IsLabel(const char* text) {
  if (text == nullptr) return false;
  const size_t length = strnlen(text, 65);
  if (length < 1 || length > 64) return false;
  for (size_t i = 0; i < length; ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (std::isalnum(c) == 0 && c != '_' && c != '-' && c != '.') return false;
  }
  return true;
}

absl::Status CheckTable(const std::string& path, const thinwire_codec_v1* table) {
  if (table == nullptr) return Refuse(path, "thinwire_codec() returned null");
  if (table->abi != THINWIRE_CODEC_ABI || table->struct_bytes != sizeof(thinwire_codec_v1)) {
    return absl::FailedPreconditionError(
        absl::StrCat("codec plug-in ", path, ": built for interface ", table->abi, " (",
                     table->struct_bytes, " bytes), this Thinwire has ", THINWIRE_CODEC_ABI, " (",
                     sizeof(thinwire_codec_v1), " bytes); compile it with our codec_plugin.h"));
  }
  if (!IsLabel(table->name) || !IsLabel(table->version)) {
    return Refuse(path, "name and version want 1 to 64 letters, digits, '_', '-', '.'");
  }
  CodecKind kind;
  if (FromName(table->name, &kind).ok()) {
    return Refuse(path, "its name ", table->name, " is that of a built-in codec");
  }
  if (table->help == nullptr || table->create == nullptr || table->destroy == nullptr ||
      table->bound == nullptr || table->encode == nullptr || table->decode == nullptr ||
      (table->parameters == nullptr && table->num_parameters > 0)) {
    return Refuse(path, "a pointer of its description is null");
  }
  return absl::OkStatus();
}

absl::StatusOr<const thinwire_codec_v1*> Open(const std::string& path) {
  // The loader would wait for a FIFO's or a terminal's first byte with its lock held, and no thread
  // could start any more.
  RETURN_IF_ERROR(CheckRegular(path));
  // Never closed: tables and code stay valid, and thread-local data of the library too.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::NotFoundError(absl::StrCat("codec plug-in ", path, ": ", dlerror()));
  }
  void* entry = dlsym(library, "thinwire_codec");
  if (entry == nullptr) return Refuse(path, dlerror());
  const thinwire_codec_v1* table = reinterpret_cast<decltype(&thinwire_codec)>(entry)();
  RETURN_IF_ERROR(CheckTable(path, table));
  return table;
}

// Returns the library's defaults, overridden by the parameters that are given.
absl::StatusOr<std::string> Parameters(const std::string& path, const thinwire_codec_v1& table,
                                       const std::string& text) {
  const json given = json::parse(text.empty() ? "{}" : text, nullptr, /*allow_exceptions=*/false);
  if (!given.is_object()) return Refuse(path, "parameters ", text, " are no JSON object");
  json all = json::object();
  std::vector<std::string> names;
  for (size_t i = 0; i < table.num_parameters; ++i) {
    const thinwire_parameter_v1& parameter = table.parameters[i];
    if (!IsLabel(parameter.name) || parameter.default_json == nullptr ||
        parameter.help == nullptr) {
      return Refuse(path, "parameter ", i, " has no proper name, default or help");
    }
    all[parameter.name] = json::parse(parameter.default_json, nullptr, /*allow_exceptions=*/false);
    if (all[parameter.name].is_discarded()) {
      return Refuse(path, "default of ", parameter.name, " is no JSON: ", parameter.default_json);
    }
    names.push_back(parameter.name);
  }
  for (const auto& [name, value] : given.items()) {
    if (!all.contains(name)) {
      return Refuse(path, "unknown parameter \"", name, "\", nearest is \"",
                    NearestName(name, names), "\" (takes ", absl::StrJoin(names, ", "), ")");
    }
    all[name] = value;
  }
  return all.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
}

uint64_t DigestOf(const Plugin& plugin) {
  Digest digest;
  for (const std::string& text :
       {std::string(plugin.table->name), std::string(plugin.table->version), plugin.parameters}) {
    digest.AddWord(text.size());
    digest.Add(text.data(), text.size());
  }
  return digest.value() == 0 ? 1 : digest.value();  // 0 says that there is none
}

absl::Status Create(Plugin* plugin) {
  char text[256] = {};
  plugin->codec = plugin->table->create(plugin->parameters.c_str(), {text, sizeof(text)});
  text[sizeof(text) - 1] = '\0';
  if (plugin->codec != nullptr) return absl::OkStatus();
  return Refuse(plugin->path, "refuses the parameters ", plugin->parameters, ": ", text);
}

class Registry {
 public:
  static Registry& Get() {
    static Registry* const registry = new Registry;
    return *registry;
  }

  absl::StatusOr<uint64_t> Load(const std::string& path, const std::string& parameters) {
    const absl::MutexLock lock(&mutex_);
    auto plugin = std::make_unique<Plugin>();
    plugin->path = path;
    ASSIGN_OR_RETURN(plugin->table, Open(path));
    ASSIGN_OR_RETURN(plugin->parameters, Parameters(path, *plugin->table, parameters));
    plugin->digest = DigestOf(*plugin);
    const auto known = plugins_.find(plugin->digest);
    if (known != plugins_.end()) {
      if (known->second->table == plugin->table) return plugin->digest;
      return absl::AlreadyExistsError(absl::StrCat("codec plug-in ", path, ": ", plugin->ToString(),
                                                   " was loaded from ", known->second->path));
    }
    RETURN_IF_ERROR(Create(plugin.get()));
    const uint64_t digest = plugin->digest;
    plugins_[digest] = std::move(plugin);
    return digest;
  }

  const Plugin* Find(uint64_t digest) {
    const absl::MutexLock lock(&mutex_);
    const auto found = plugins_.find(digest);
    return found == plugins_.end() ? nullptr : found->second.get();
  }

 private:
  absl::Mutex mutex_;
  // Loaded plug-ins by digest; none is ever removed.
  std::map<uint64_t, std::unique_ptr<const Plugin>> plugins_ ABSL_GUARDED_BY(mutex_);
};

// Null of a built-in codec, and of a plug-in that was not loaded.
const Plugin* PluginOf(const CodecSpec& spec) {
  return spec.plugin == 0 ? nullptr : FindPlugin(spec.plugin);
}

}  // namespace

std::string Plugin::ToString() const {
  return absl::StrCat(table->name, " ", table->version, " ", parameters);
}

absl::StatusOr<uint64_t> LoadPlugin(const std::string& path, const std::string& parameters_json) {
  if (path.empty()) return absl::InvalidArgumentError("codec plug-in: no path of a library");
  // A name without a slash would be looked for in the system's folders.
  std::error_code ignored;
  const std::string absolute = std::filesystem::absolute(path, ignored).string();
  return Registry::Get().Load(absolute, parameters_json);
}

bool IsLibrary(const std::string& text) {
  return absl::StrContains(text, '/') || absl::EndsWith(text, ".so");
}

absl::StatusOr<CodecSpec> ParseCodecOrLibrary(const std::string& text,
                                              const std::string& parameters_json) {
  if (!IsLibrary(text)) return ParseCodec(text);
  CodecSpec spec;
  spec.kind = CodecKind::kPlugin;
  ASSIGN_OR_RETURN(spec.plugin, LoadPlugin(text, parameters_json));
  return spec;
}

const Plugin* FindPlugin(uint64_t digest) { return Registry::Get().Find(digest); }

std::string CodecName(const CodecSpec& spec) {
  const Plugin* plugin = PluginOf(spec);
  return plugin == nullptr ? Name(spec.kind) : plugin->table->name;
}

std::string CodecText(const CodecSpec& spec) {
  const Plugin* plugin = PluginOf(spec);
  if (plugin == nullptr) return spec.ToString();
  if (spec.lossless == Lossless::kNone) return plugin->ToString();
  return absl::StrCat(plugin->ToString(), " lossless=", Name(spec.lossless));
}

}  // namespace thinwire
