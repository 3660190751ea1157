// jpeglib.h wants FILE and size_t before it.
// clang-format off
#include <cstdio>

#include <jpeglib.h>
#include <jerror.h>
// clang-format on
#include <setjmp.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "data/picture_formats.h"

namespace thinwire {
namespace {

constexpr int kMostScans = 500;  // each takes the time of the whole picture

// Reads one file. The library reports errors by a jump, over which no object must be made.
class JpegReader {
 public:
  explicit JpegReader(std::string_view bytes) {
    library_.err = jpeg_std_error(&errors_);
    library_.client_data = this;
    errors_.error_exit = OnError;
    errors_.emit_message = OnMessage;
    is_ready_ = Create(bytes);
  }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
  ~JpegReader() { jpeg_destroy_decompress(&library_); }

  bool is_ready() const { return is_ready_; }
  int width() const { return static_cast<int>(library_.image_width); }
  int height() const { return static_cast<int>(library_.image_height); }
  bool is_cmyk() const {
    return library_.jpeg_color_space == JCS_CMYK || library_.jpeg_color_space == JCS_YCCK;
  }
  absl::Status Error() const { return absl::InvalidArgumentError(absl::StrCat("JPEG: ", what_)); }

  // Decodes to the picture, which has its size; false: see Error.
  bool Decode(Picture* picture) {
    if (setjmp(jump_) != 0) return false;
    library_.out_color_space = JCS_RGB;
    jpeg_start_decompress(&library_);
    while (library_.output_scanline < library_.output_height) {
      JSAMPROW row = picture->row(static_cast<int>(library_.output_scanline));
      jpeg_read_scanlines(&library_, &row, 1);
    }
    jpeg_finish_decompress(&library_);
    return true;
  }

 private:
  bool Create(std::string_view bytes) {
    if (setjmp(jump_) != 0) return false;
    jpeg_create_decompress(&library_);
    progress_.progress_monitor = OnProgress;
    library_.progress = &progress_;
    jpeg_mem_src(&library_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&library_, TRUE);
    return true;
  }

  static void OnError(j_common_ptr library) {
    auto* const reader = static_cast<JpegReader*>(library->client_data);
    library->err->format_message(library, reader->what_);
    longjmp(reader->jump_, 1);
  }
  // A file that ends early is an error; of other oddities the library makes the best.
  static void OnMessage(j_common_ptr library, int level) {
    if (level < 0 && library->err->msg_code == JWRN_JPEG_EOF) OnError(library);
  }

  static void OnProgress(j_common_ptr library) {
    auto* const reader = static_cast<JpegReader*>(library->client_data);
    if (reader->library_.input_scan_number <= kMostScans) return;
    snprintf(reader->what_, sizeof(reader->what_), "has more than %d scans, want no more",
             kMostScans);
    longjmp(reader->jump_, 1);
  }

  jpeg_decompress_struct library_ = {};
  jpeg_progress_mgr progress_ = {};
  jpeg_error_mgr errors_ = {};
  jmp_buf jump_;
  char what_[JMSG_LENGTH_MAX] = "";
  bool is_ready_ = false;
};

}  // namespace

absl::StatusOr<Picture> DecodeJpeg(std::string_view bytes) {
  JpegReader reader(bytes);
  if (!reader.is_ready()) return reader.Error();
  if (reader.is_cmyk()) {
    return absl::InvalidArgumentError("JPEG: its colours are CMYK, want RGB or grey");
  }
  RETURN_IF_ERROR(CheckPixels(reader.width(), reader.height()));
  Picture picture{reader.width(), reader.height(), {}};
  picture.rgb.resize(size_t{3} * picture.width * picture.height);
  if (!reader.Decode(&picture)) return reader.Error();
  return picture;
}

}  // namespace thinwire
