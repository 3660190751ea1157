#include "base/text.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(MarkupText, ReplacesWhatIsReserved) {
  EXPECT_EQ(MarkupText("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  EXPECT_EQ(MarkupText("x − x̂"), "x − x̂");
}

TEST(CsvField, IsQuotedWhereItNeedsTo) {
  EXPECT_EQ(CsvField("plain text"), "plain text");
  EXPECT_EQ(CsvField("a,b"), "\"a,b\"");
  EXPECT_EQ(CsvField("a \"b\""), "\"a \"\"b\"\"\"");
  EXPECT_EQ(CsvField("two\nlines"), "\"two\nlines\"");
}

}  // namespace
}  // namespace thinwire
