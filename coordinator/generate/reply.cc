#include "coordinator/generate/reply.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "base/status.h"
#include "coordinator/generate/stop_texts.h"

namespace thinwire {

absl::Status WriteReply(std::vector<int32_t> text, const Tokenizer& tokenizer,
                        const std::vector<std::string>& stops, TextWriter* writer,
                        const std::function<absl::Status(std::string_view piece)>& show) {
  StopTexts stop(stops);
  const std::vector<int32_t> ends = tokenizer.ends_of_text();
  const auto on_token = [&](int32_t id) -> absl::StatusOr<bool> {
    if (absl::c_linear_search(ends, id)) return false;
    ASSIGN_OR_RETURN(const std::string piece, tokenizer.Continue({id}));
    RETURN_IF_ERROR(show(stop.Take(piece)));
    return !stop.seen();
  };
  absl::Status status = writer->Write(std::move(text), on_token);
  status.Update(show(stop.Rest()));
  return status;
}

}  // namespace thinwire
