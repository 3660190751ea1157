// Measurements of codecs as text.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/codecs/measure.h"
#include "coordinator/files/json.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

std::string Markdown(const Measurements& measurements) {
  std::string text =
      "| codec | tensors | wire bits / element | relative error | cosine | encode GB/s "
      "| of memcpy | decode GB/s | of memcpy | break-even Mbit/s |\n"
      "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n";
  for (const CodecMeasurement& row : measurements.rows) {
    absl::StrAppend(&text, "| ", row.codec, " | ", row.group, " | ");
    if (!row.refused.empty()) {
      absl::StrAppend(&text, "refused: ", row.refused, " | | | | | | | |\n");
      continue;
    }
    absl::StrAppendFormat(&text, "%.3f | %.2e | %.4f | %.2f | %.0f %% | %.2f | %.0f %% | ",
                          row.wire_bits_per_element, row.relative_error, row.cosine,
                          row.encode_bytes_per_second / 1e9, 100 * row.encode_of_memcpy,
                          row.decode_bytes_per_second / 1e9, 100 * row.decode_of_memcpy);
    absl::StrAppend(&text,
                    row.break_even_bits_per_second > 0
                        ? absl::StrFormat("%.0f", row.break_even_bits_per_second / 1e6)
                        : "-",
                    " |\n");
  }
  return absl::StrCat(text, "\nMedians of ", measurements.rounds,
                      " interleaved rounds, one thread.\n");
}

std::string Json(const Measurements& measurements) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const CodecMeasurement& row : measurements.rows) {
    nlohmann::ordered_json json = {{"codec", row.codec}, {"tensors", row.group}};
    if (!row.refused.empty()) {
      json["refused"] = row.refused;
    } else {
      json["wire_bits_per_element"] = row.wire_bits_per_element;
      json["relative_error"] = row.relative_error;
      json["cosine"] = row.cosine;
      json["encode_bytes_per_second"] = row.encode_bytes_per_second;
      json["decode_bytes_per_second"] = row.decode_bytes_per_second;
      json["encode_of_memcpy"] = row.encode_of_memcpy;
      json["decode_of_memcpy"] = row.decode_of_memcpy;
      json["break_even_bits_per_second"] = row.break_even_bits_per_second;
    }
    rows.push_back(std::move(json));
  }
  return JsonText(nlohmann::ordered_json{{"rounds", measurements.rounds}, {"rows", rows}}, 2) +
         "\n";
}

}  // namespace

std::string FormatMeasurements(const Measurements& measurements, TextFormat format) {
  return format == TextFormat::kJson ? Json(measurements) : Markdown(measurements);
}

}  // namespace thinwire
