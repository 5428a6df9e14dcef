#include "plugins/tokenizer/bpe/sha256.hpp"

#include <gtest/gtest.h>

#include <string>

namespace dovetail::bpe {
namespace {

std::string hex(std::array<uint8_t, 32> digest) {
  std::string out;
  for (const uint8_t b : digest) {
    out += "0123456789abcdef"[b >> 4];
    out += "0123456789abcdef"[b & 15];
  }
  return out;
}

std::string sha256(const std::string& text, size_t part) {
  Sha256 hash;
  for (size_t i = 0; i < text.size(); i += part) hash.add(std::string_view(text).substr(i, part));
  return hex(hash.finish());
}

TEST(Sha256, GivesTheDigestsOfTheStandard) {
  EXPECT_EQ(sha256("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc", 64), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 5),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a'), 1000),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace dovetail::bpe
