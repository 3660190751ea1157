#include "data/picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>

#include "base/sha256.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

using Json = nlohmann::json;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr char kFolder[] = "data/picture_testdata/";  // made by picture_fixture.py

std::string ReadPicture(const std::string& name) {
  std::ifstream file(kFolder + name, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  EXPECT_FALSE(bytes.empty()) << name;
  return bytes;
}

std::string DigestOf(const Picture& picture) {
  return Sha256({reinterpret_cast<const char*>(picture.rgb.data()), picture.rgb.size()});
}

std::string Refusal(const std::string& bytes) {
  const absl::Status status = DecodePicture(bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(PictureTest, EveryKindIsDecodedAndResizedAsPillowDoes) {
  const Json known = Json::parse(ReadPicture("known.json"));
  const auto box = known["box"].get<std::vector<int>>();
  const PictureBox part = {box[0], box[1], box[2] - box[0], box[3] - box[1]};
  for (const auto& [name, digests] : known["pictures"].items()) {
    const auto picture = DecodePicture(ReadPicture(name));
    ASSERT_TRUE(picture.ok()) << name << ": " << picture.status();
    EXPECT_EQ(picture->width, 61) << name;
    EXPECT_EQ(picture->height, 43) << name;
    EXPECT_EQ(DigestOf(*picture), digests[0]) << name;
    for (size_t i = 0; i < known["sizes"].size(); ++i) {
      const auto size = known["sizes"][i].get<std::vector<int>>();
      EXPECT_EQ(DigestOf(Resized(*picture, part, size[0], size[1])), digests[i + 1])
          << name << " " << known["sizes"][i];
    }
  }
  EXPECT_EQ(known["pictures"].size(), 8u);
}

TEST(PictureTest, OtherKindsAreNamed) {
  EXPECT_EQ(Refusal("GIF89a"), "is no JPEG and no PNG");
  EXPECT_EQ(Refusal(""), "is no JPEG and no PNG");
  EXPECT_EQ(Refusal(ReadPicture("refused_cmyk.jpg")),
            "JPEG: its colours are CMYK, want RGB or grey");
  EXPECT_EQ(Refusal(ReadPicture("refused_deep.png")), "PNG: has 16 bits a channel, want 8 at most");
}

TEST(PictureTest, FilesThatEndTooEarlyAreRefusedWhereverTheyEnd) {
  for (const char* name : {"halved.jpg", "rgb.png", "palette.png"}) {
    const std::string whole = ReadPicture(name);
    const size_t end = whole.size() - (name[0] == 'h' ? 2 : 12);  // the last mark may be missing
    for (size_t size = 8; size < end; size += 3) {
      EXPECT_THAT(Refusal(whole.substr(0, size)), AnyOf(HasSubstr("JPEG: "), HasSubstr("PNG: ")))
          << name << " " << size;
    }
  }
}

TEST(PictureTest, APartOfAResizedPictureIsWhatThatHasThere) {
  const Picture picture = *DecodePicture(ReadPicture("rgb.png"));
  for (const auto& [width, height] : {std::pair{200, 100}, std::pair{30, 20}, std::pair{61, 43}}) {
    const Picture whole = Resized(picture, {0, 0, 61, 43}, width, height);
    const Picture part = ResizedPart(picture, width, height, {7, 5, 20, 11});
    for (int y = 0; y < 11; ++y) {
      for (int i = 0; i < 3 * 20; ++i) {
        ASSERT_EQ(part.row(y)[i], whole.row(y + 5)[i + 3 * 7]) << width << " " << y << " " << i;
      }
    }
  }
}

// Returns a progressive file whose last scan stands there so many times more.
std::string WithScans(int more) {
  std::string file = ReadPicture("progressive.jpg");
  const size_t begin = file.rfind("\xFF\xDA"), end = file.rfind("\xFF\xD9");
  const std::string scan = file.substr(begin, end - begin);
  for (int i = 0; i < more; ++i) file.insert(begin, scan);
  return file;
}

TEST(PictureTest, FilesThatWouldBeDecodedTooOftenAreRefused) {
  EXPECT_TRUE(DecodePicture(WithScans(400)).ok());
  EXPECT_EQ(Refusal(WithScans(500)), "JPEG: has more than 500 scans, want no more");
}

TEST(PictureTest, HugePicturesAreRefusedBeforeTheyTakeMemory) {
  std::string png = ReadPicture("rgb.png");
  const std::string side("\x00\x01\x00\x00", 4);  // 65536
  png.replace(16, 8, side + side);
  const uLong crc = crc32(0, reinterpret_cast<const Bytef*>(&png[12]), 17);
  for (int i = 0; i < 4; ++i) png[29 + i] = static_cast<char>(crc >> (24 - 8 * i));
  EXPECT_EQ(Refusal(png), "is 65536 x 65536 pixels, want 1 to 67108864 in all");
}

}  // namespace
}  // namespace thinwire
