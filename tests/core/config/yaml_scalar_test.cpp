#include "core/config/yaml_scalar.hpp"

#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <limits>
#include <locale>
#include <string>

namespace dovetail::core {
namespace {

struct Comma : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
};

Node read(std::string_view text) {
  Result<Node> node = read_plain_scalar(text);
  EXPECT_TRUE(node.is_ok()) << text << ": " << node.status().message();
  return node ? std::move(node).value() : Node();
}

double number(std::string_view text) {
  const Node node = read(text);
  EXPECT_EQ(node.kind(), Node::Kind::kFloat) << text;
  EXPECT_EQ(node.number_text(), text);
  return node.is_number() ? node.as_float() : NAN;
}

int64_t integer(std::string_view text) {
  const Node node = read(text);
  EXPECT_TRUE(node.is_int()) << text;
  return node.is_int() ? node.as_int() : -999;
}

bool is_string(std::string_view text) {
  const Node node = read(text);
  return node.is_string() && node.as_string() == text;
}

TEST(YamlScalar, ReadsNullAndBooleansOfTheCoreSchemaOnly) {
  for (const char* text : {"", "~", "null", "Null", "NULL"})
    EXPECT_TRUE(read(text).is_null()) << text;
  for (const char* text : {"true", "True", "TRUE"}) EXPECT_TRUE(read(text).as_bool()) << text;
  for (const char* text : {"false", "False", "FALSE"}) EXPECT_FALSE(read(text).as_bool()) << text;
  for (const char* text : {"no", "yes", "on", "off", "y", "n", "tRUE", "nULL", "nil"}) {
    EXPECT_TRUE(is_string(text)) << text;
  }
}

TEST(YamlScalar, ReadsNumbersWithAnExponentOrABarePoint) {  // B088
  EXPECT_EQ(number("1e-6"), 1e-6);
  EXPECT_EQ(number("1E-5"), 1e-5);
  EXPECT_EQ(number("1.e-6"), 1e-6);
  EXPECT_EQ(number(".5"), 0.5);
  EXPECT_EQ(number("-.5e+1"), -5.0);
  EXPECT_EQ(number("+0.1"), 0.1);
  EXPECT_EQ(number("5."), 5.0);
  EXPECT_EQ(number("1e3"), 1000.0);
  EXPECT_TRUE(std::signbit(number("-0.0")));
  EXPECT_EQ(number("00.5"), 0.5);
  EXPECT_EQ(integer("+1"), 1);
}

TEST(YamlScalar, ReadsIntegersInThreeBases) {  // B089
  EXPECT_EQ(integer("0"), 0);
  EXPECT_EQ(integer("-0"), 0);
  EXPECT_EQ(integer("-12"), -12);
  EXPECT_EQ(integer("0o10"), 8);
  EXPECT_EQ(integer("0o17"), 15);
  EXPECT_EQ(integer("0x10"), 16);
  EXPECT_EQ(integer("0x1F"), 31);
  EXPECT_EQ(integer("0x1f"), 31);
  EXPECT_EQ(integer("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(integer("-9223372036854775808"), std::numeric_limits<int64_t>::min());
}

TEST(YamlScalar, KeepsTheSpellingOfAnIntegerBeyond64Bits) {
  EXPECT_EQ(number("9223372036854775808"), 9223372036854775808.0);
  EXPECT_EQ(number("-18446744073709551615"), -18446744073709551616.0);
}

TEST(YamlScalar, AsksWhatALeadingZeroMeans) {  // B089
  const Result<Node> octal_or_not = read_plain_scalar("0010");
  ASSERT_FALSE(octal_or_not.is_ok());
  EXPECT_NE(octal_or_not.status().message().find(
                "write 10 for the decimal number, 0o10 for the octal one"),
            std::string::npos)
      << octal_or_not.status().message();
  for (const char* text : {"010", "08", "09", "0080", "-010", "+01", "00", "-00"}) {
    const Result<Node> node = read_plain_scalar(text);
    EXPECT_FALSE(node.is_ok()) << text;
    EXPECT_NE(node.status().message().find(text), std::string::npos) << node.status().message();
  }
  EXPECT_EQ(read_plain_scalar("08").status().message().find("octal"), std::string::npos);
  EXPECT_NE(read_plain_scalar("00").status().message().find("write 0 for"), std::string::npos);
}

TEST(YamlScalar, RefusesWhatIsNotFinite) {  // B088
  for (const char* text :
       {".inf", "-.inf", "+.Inf", ".INF", ".nan", ".NaN", ".NAN", "1e400", "-1e400", "1e-400",
        "0xFFFFFFFFFFFFFFFFF", "0x8000000000000000", "0o7777777777777777777777777"}) {
    const Result<Node> node = read_plain_scalar(text);
    EXPECT_FALSE(node.is_ok()) << text;
    EXPECT_NE(node.status().message().find(text), std::string::npos) << node.status().message();
  }
  const std::string digits(400, '9');
  EXPECT_FALSE(read_plain_scalar(digits).is_ok());
}

TEST(YamlScalar, LeavesEverythingElseAText) {
  for (const char* text :
       {"1_000", "1,5",   "1.2.3", "e5",  "1e",   "1e+",   ".",    "-",          "+",
        "--1",   "0b101", "0o8",   "0o",  "0x",   "-0x1F", "1:30", "2026-11-30", "inf",
        "nan",   "NaN",   "-.nan", "1 2", "0x1G", "1f",    ".e5"}) {
    EXPECT_TRUE(is_string(text)) << text;
  }
}

TEST(YamlScalar, HasNoUseForTheLocale) {  // B088
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Comma));
  const std::string c_before = std::setlocale(LC_ALL, nullptr);
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"}) {
    if (std::setlocale(LC_ALL, name) != nullptr) break;  // where the system has one
  }
  EXPECT_EQ(number("1.5"), 1.5);
  EXPECT_EQ(number("1e-6"), 1e-6);
  EXPECT_TRUE(is_string("1,5"));
  std::setlocale(LC_ALL, c_before.c_str());
  std::locale::global(before);
}

}  // namespace
}  // namespace dovetail::core
