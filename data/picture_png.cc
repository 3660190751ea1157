#include <png.h>
#include <setjmp.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "data/picture_formats.h"

namespace thinwire {
namespace {

// Reads one file. The library reports errors by a jump, over which no object must be made.
class PngReader {
 public:
  explicit PngReader(std::string_view bytes) : left_(bytes) {
    library_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, OnError, OnWarning);
    if (library_ != nullptr) info_ = png_create_info_struct(library_);
    is_ready_ = info_ != nullptr && ReadHead();
  }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&library_, &info_, nullptr); }

  bool is_ready() const { return is_ready_; }
  int64_t width() const { return png_get_image_width(library_, info_); }
  int64_t height() const { return png_get_image_height(library_, info_); }
  int depth() const { return png_get_bit_depth(library_, info_); }
  absl::Status Error() const { return absl::InvalidArgumentError(absl::StrCat("PNG: ", what_)); }

  // Decodes to the rows of a picture; false: see Error.
  bool Decode(png_bytep* rows) {
    if (setjmp(jump_) != 0) return false;
    png_set_expand(library_);
    png_set_gray_to_rgb(library_);
    png_set_strip_alpha(library_);
    png_read_image(library_, rows);
    png_read_end(library_, nullptr);
    return true;
  }

 private:
  bool ReadHead() {
    if (setjmp(jump_) != 0) return false;
    png_set_read_fn(library_, this, Read);
    png_read_info(library_, info_);
    return true;
  }

  static void Read(png_structp library, png_bytep to, size_t bytes) {
    auto* const reader = static_cast<PngReader*>(png_get_io_ptr(library));
    if (reader->left_.size() < bytes) png_error(library, "the file ends too early");
    std::memcpy(to, reader->left_.data(), bytes);
    reader->left_.remove_prefix(bytes);
  }
  static void OnError(png_structp library, png_const_charp what) {
    auto* const reader = static_cast<PngReader*>(png_get_error_ptr(library));
    strncpy(reader->what_, what, sizeof(reader->what_) - 1);
    longjmp(reader->jump_, 1);
  }
  static void OnWarning(png_structp, png_const_charp) {}

  png_structp library_ = nullptr;
  png_infop info_ = nullptr;
  std::string_view left_;
  jmp_buf jump_;
  char what_[200] = "no memory";
  bool is_ready_ = false;
};

}  // namespace

absl::StatusOr<Picture> DecodePng(std::string_view bytes) {
  PngReader reader(bytes);
  if (!reader.is_ready()) return reader.Error();
  if (reader.depth() == 16) {
    return absl::InvalidArgumentError("PNG: has 16 bits a channel, want 8 at most");
  }
  RETURN_IF_ERROR(CheckPixels(reader.width(), reader.height()));
  Picture picture{static_cast<int>(reader.width()), static_cast<int>(reader.height()), {}};
  picture.rgb.resize(size_t{3} * picture.width * picture.height);
  std::vector<png_bytep> rows;
  for (int y = 0; y < picture.height; ++y) rows.push_back(picture.row(y));
  if (!reader.Decode(rows.data())) return reader.Error();
  return picture;
}

}  // namespace thinwire
