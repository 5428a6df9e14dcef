#include <gtest/gtest.h>
#include <dovetail/json_string.hpp>

namespace dovetail {
namespace {

TEST(JsonString, EscapesWhatJsonDemandsAndNothingElse) {
  std::string out = "x: ";
  append_json_string("a\"b\\c/\b\f\n\r\t\x01\x1f\x7f größer 😀", out);
  EXPECT_EQ(out, "x: \"a\\\"b\\\\c/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f größer 😀\"");
  out.clear();
  append_json_string(std::string_view("\0", 1), out);
  append_json_string("", out);
  EXPECT_EQ(out, "\"\\u0000\"\"\"");
}

}  // namespace
}  // namespace dovetail
