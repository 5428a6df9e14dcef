#include <gtest/gtest.h>
#include <dovetail/sha256.hpp>

#include <string_view>

namespace dovetail {
namespace {

// FIPS 180-4 examples, and lengths at which the padding needs a block of its own.
TEST(Sha256, EqualsItsPublishedVectors) {
  const auto hex = [](std::string_view s) {
    return sha256_hex(std::as_bytes(std::span(s.data(), s.size())));
  };
  EXPECT_EQ(hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace dovetail
