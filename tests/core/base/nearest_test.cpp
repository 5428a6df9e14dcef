#include "core/base/nearest.hpp"

#include <gtest/gtest.h>

#include <string>

namespace dovetail::core {
namespace {

TEST(NearestName, FindsTheNameThatWasMeant) {
  EXPECT_EQ(nearest_name("tempreture", {"top_k", "temperature", "top_p"}), "temperature");
  EXPECT_EQ(nearest_name("modle", {"model", "chat"}), "model");
  EXPECT_EQ(nearest_name("pah", {"path", "name"}), "path");
  EXPECT_EQ(nearest_name("top_kk", {"top_p", "top_k"}), "top_k");
}

TEST(NearestName, SaysNothingWhenNoneIsNear) {
  EXPECT_EQ(nearest_name("colour", {"path", "name"}), "");
  EXPECT_EQ(nearest_name("", {"path"}), "");
  EXPECT_EQ(nearest_name("a", {"b"}), "");
  EXPECT_EQ(nearest_name("path", {}), "");
  EXPECT_EQ(nearest_name(std::string(100'000, 'x'), {std::string(100'000, 'y')}), "");
}

TEST(NearestName, CountsASwapAsOneEdit) {
  EXPECT_EQ(nearest_name("ab", {"xyz", "ba"}), "ba");
  EXPECT_EQ(did_you_mean("cahced", {"cached"}), ", did you mean \"cached\"?");
}

}  // namespace
}  // namespace dovetail::core
