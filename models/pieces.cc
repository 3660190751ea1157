#include "models/pieces.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

bool IsCoded(const ParameterSpec& parameter) {
  return parameter.shape.rank() >= 2 && parameter.shape.elements() >= kCodedElements &&
         !parameter.orthonormal;
}

const std::string& NameOf(const ParameterSpec& parameter) {
  return parameter.tied_to.empty() ? parameter.name : parameter.tied_to;
}

void AppendRows(const ParameterSpec& parameter, size_t index, std::vector<Piece>* pieces) {
  const int64_t rows = parameter.shape[0];
  const int64_t of_row = parameter.shape.elements() / rows;
  const int64_t most_rows = std::max<int64_t>(1, kPieceElements / of_row);
  const int64_t count = (rows + most_rows - 1) / most_rows;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = rows * i / count, end = rows * (i + 1) / count;
    Piece& piece = pieces->emplace_back();
    piece.name = absl::StrCat(NameOf(parameter), "[", first, "]");
    piece.shape = {end - first, of_row};
    piece.coded = true;
    piece.parts.push_back({index, first, end - first});
  }
}

// Appends the piece of whole parameters, unless there are none.
void AppendRest(const std::vector<ParameterSpec>& parameters, const std::vector<size_t>& rest,
                std::vector<Piece>* pieces) {
  if (rest.empty()) return;
  Piece& piece = pieces->emplace_back();
  piece.name = NameOf(parameters[rest.front()]);
  if (rest.size() > 1) absl::StrAppend(&piece.name, " and ", rest.size() - 1, " more");
  int64_t elements = 0;
  for (const size_t i : rest) {
    piece.parts.push_back({i, 0, parameters[i].shape[0]});
    elements += parameters[i].shape.elements();
  }
  piece.shape = {1, elements};
}

}  // namespace

std::vector<Piece> PiecesOf(const std::vector<ParameterSpec>& parameters) {
  std::vector<Piece> pieces;
  std::vector<size_t> whole;
  std::map<int, std::vector<size_t>> of_parts;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const ParameterSlice& slice = parameters[i].slice;
    if (IsCoded(parameters[i])) {
      AppendRows(parameters[i], i, &pieces);
    } else {
      (slice.is_of_part() ? of_parts[slice.part] : whole).push_back(i);
    }
  }
  for (const auto& [part, rest] : of_parts) AppendRest(parameters, rest, &pieces);
  AppendRest(parameters, whole, &pieces);
  return pieces;
}

std::map<std::string, int> FragmentsOf(const std::vector<ParameterSpec>& parameters,
                                       int fragments) {
  std::map<std::string, int> fragment_of;
  std::vector<int64_t> elements(static_cast<size_t>(fragments));
  for (const ParameterSpec& parameter : parameters) {
    const bool is_free = parameter.within.empty() && parameter.tied_to.empty();
    if (!parameter.is_trained() || !IsCoded(parameter) || !is_free) continue;
    const auto least = std::min_element(elements.begin(), elements.end());
    *least += parameter.shape.elements();
    fragment_of[parameter.name] = static_cast<int>(least - elements.begin());
  }
  for (const ParameterSpec& parameter : parameters) {
    const auto original = fragment_of.find(parameter.tied_to);
    if (original != fragment_of.end()) fragment_of[parameter.name] = original->second;
  }
  return fragment_of;
}

std::vector<int> OwnersOf(const std::vector<Piece>& pieces, int segment, int count) {
  std::vector<size_t> by_size(pieces.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  const auto elements = [&](size_t piece) { return pieces[piece].shape.elements(); };
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](size_t a, size_t b) { return elements(a) > elements(b); });
  std::vector<int> owners(pieces.size());
  std::vector<int64_t> owned(count);
  for (const size_t piece : by_size) {
    const auto least = std::min_element(owned.begin(), owned.end());
    owners[piece] = (segment + static_cast<int>(least - owned.begin())) % count;
    *least += elements(piece);
  }
  return owners;
}

}  // namespace thinwire
