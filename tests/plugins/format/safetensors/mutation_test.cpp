// Damaged files of every kind: refused or read, never a crash and never a span outside the file.
#include <random>

#include "reader_rig.hpp"

namespace dovetail::core {
namespace {

TEST_F(ReaderTest, SurvivesFiveThousandMutations) {
  const std::string good = file_of(
      R"({"__metadata__":{"format":"pt"},"model.embed.weight":{"dtype":"BF16","shape":[4,2],"data_offsets":[0,16]},)"
      R"("model.norm.weight":{"dtype":"F32","shape":[2],"data_offsets":[16,24]},"e":{"dtype":"U8","shape":[0],"data_offsets":[24,24]}})",
      24);
  ASSERT_EQ(refusal_of_bytes(good), "");
  std::mt19937 random(7);
  const std::string alphabet = "{}[]\",:0123456789-.eE\\nul \xff";
  size_t n_refused = 0;
  for (int i = 0; i < 5000; ++i) {
    write("model.safetensors", mutated(good, random, alphabet));
    const Status s = open();  // checks every span against the file
    n_refused += s.is_ok() ? 0 : 1;
    if (!s.is_ok()) {
      EXPECT_FALSE(s.message().empty());
      EXPECT_EQ(s.message().find('\n'), std::string::npos) << s.message();
    }
  }
  EXPECT_GT(n_refused, 4000u);
}

}  // namespace
}  // namespace dovetail::core
