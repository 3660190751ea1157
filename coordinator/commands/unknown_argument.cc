#include "coordinator/commands/unknown_argument.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "config/fields.h"

namespace thinwire {
namespace {

std::string UnknownCommand(const CLI::App& app, const std::string& given) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return absl::StrCat(given, ": unknown command; did you mean ", NearestName(given, names), "?");
}

std::vector<std::string> FlagsOf(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string>& long_names = option->get_lnames();
    names.insert(names.end(), long_names.begin(), long_names.end());
  }
  return names;
}

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Returns what `flag`, given without dashes and value, probably means; empty if nothing is near.
std::string MeantBy(const std::string& flag, const std::vector<std::string>& flags) {
  const std::string nearest = NearestName(flag, flags);
  if (EditDistance(flag, nearest) <= std::max<size_t>(1, flag.size() / 4)) return "--" + nearest;
  const std::string field = Has(flags, "set") ? PathOf(flag) : "";
  return field.empty() ? "" : absl::StrCat("--set ", field, "=...");
}

}  // namespace

std::string UnknownArgument(const CLI::App& app) {
  const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
  if (unknown.empty()) return "";
  const std::vector<CLI::App*> commands = app.get_subcommands();
  if (commands.empty()) return UnknownCommand(app, unknown.front());
  const std::vector<std::string> flags = FlagsOf(*commands.front());
  for (const std::string& argument : unknown) {
    const std::string flag = argument.substr(0, argument.find('='));
    if (flag.size() < 3 || flag.compare(0, 2, "--") != 0 || Has(flags, flag.substr(2))) continue;
    const std::string meant = MeantBy(flag.substr(2), flags);
    return absl::StrCat(flag, ": unknown flag",
                        meant.empty() ? "" : absl::StrCat("; did you mean ", meant, "?"));
  }
  return unknown.front() + ": one argument more than wanted";
}

}  // namespace thinwire
