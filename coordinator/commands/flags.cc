#include "coordinator/commands/flags.h"

#include <cmath>

#include "base/path.h"

namespace thinwire {

// CLI::NonNegativeNumber accepts nan.
extern const CLI::Validator kSeconds(
    [](std::string& text) -> std::string {
      double seconds = 0;
      const bool is_number = CLI::detail::lexical_cast(text, seconds) && std::isfinite(seconds);
      return is_number && seconds >= 0 ? "" : text + ", want a finite number of at least 0";
    },
    "SECONDS");

extern const CLI::Validator kPath(
    [](std::string& text) -> std::string {
      text = WithHome(text);
      return text.empty() ? "\"\", want a path" : "";
    },
    "PATH");

void AddOverrides(CLI::App* command, std::vector<std::string>* overrides) {
  command
      ->add_option("--set", *overrides,
                   "override a field: path=value, as compression.gradients.bits=4; may stand often")
      ->allow_extra_args(false);
}

void AddOtherBuild(CLI::App* command, SessionOptions* session) {
  command->add_flag("--allow_other_build", session->allow_other_build,
                    "take stage servers of another build than this program's, too");
}

void AddLaunch(CLI::App* command, SessionOptions* session) {
  command
      ->add_option("--stage_server", session->stage_server,
                   "stage server binary (default: the one beside thinwire)")
      ->transform(kPath);
  command->add_option("--cuda_plugin", session->cuda_plugin,
                      "libthinwire_cuda.so of stages started here (default: where stage_server "
                      "looks for it)");
  AddOtherBuild(command, session);
}

void AddSecurity(CLI::App* command, SecurityOptions* security) {
  command
      ->add_option("--tls_cert", security->tls_cert,
                   "PEM file of this program's certificate, for coordinator.thinwire; "
                   "deploy/certs.sh makes it, its key and its authority's")
      ->transform(kPath);
  command->add_option("--tls_key", security->tls_key, "PEM file of its key")->transform(kPath);
  command
      ->add_option("--tls_ca", security->tls_ca,
                   "PEM file of the authority that has signed all certificates of the run")
      ->transform(kPath);
  command
      ->add_option("--token_file", security->token_file,
                   "file with the secret that the servers of --stages want to see")
      ->transform(kPath);
}

}  // namespace thinwire
