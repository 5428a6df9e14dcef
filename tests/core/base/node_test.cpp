#include "core/base/node.hpp"

#include <gtest/gtest.h>

namespace dovetail::core {
namespace {

Node numbered_map(int n) {
  Node map = Node::make_map();
  for (int i = 0; i < n; ++i) map.set("key" + std::to_string(i), Node::make_int(i));
  return map;
}

TEST(Node, KnowsItsKindAndValue) {
  EXPECT_TRUE(Node().is_null());
  EXPECT_TRUE(Node::make_bool(true).as_bool());
  EXPECT_EQ(Node::make_int(-3).as_int(), -3);
  EXPECT_EQ(Node::make_int(2).as_float(), 2.0);
  EXPECT_EQ(Node::make_float(0.5).as_float(), 0.5);
  EXPECT_EQ(Node::make_string("x").as_string(), "x");
  EXPECT_TRUE(Node::make_list().items().empty());
  EXPECT_STREQ(Node::make_int(1).kind_name(), "an integer");
  EXPECT_STREQ(Node::make_map().kind_name(), "a map");
}

TEST(Node, NumberTextIsEmptyForStrings) {
  EXPECT_EQ(Node::make_string("12").number_text(), "");
  Node n = Node::make_float(1e-6);
  n.set_number_text("1e-6");
  EXPECT_EQ(n.number_text(), "1e-6");
}

TEST(Node, FindsEveryKeyInSmallAndLargeMaps) {
  for (const int n : {0, 1, 16, 17, 33, 64, 1000}) {
    const Node map = numbered_map(n);
    ASSERT_EQ(map.entries().size(), static_cast<size_t>(n));
    for (int i = 0; i < n; ++i) {
      const Node* value = map.find("key" + std::to_string(i));
      ASSERT_NE(value, nullptr) << n << " " << i;
      EXPECT_EQ(value->as_int(), i);
    }
    EXPECT_EQ(map.find("key"), nullptr);
  }
}

TEST(Node, SetReplacesAndKeepsOrder) {
  Node map = numbered_map(40);
  map.set("key7", Node::make_string("new"));
  EXPECT_EQ(map.entries().size(), 40u);
  EXPECT_EQ(map.entries()[7].first, "key7");
  EXPECT_EQ(map.find("key7")->as_string(), "new");
}

TEST(Node, CopiesOfALargeMapGrowIndependently) {
  const Node original = numbered_map(40);
  ASSERT_NE(original.find("key0"), nullptr);
  Node copy = original;
  copy.set("only in copy", Node::make_int(1));
  EXPECT_NE(copy.find("only in copy"), nullptr);
  EXPECT_EQ(original.find("only in copy"), nullptr);
  EXPECT_EQ(original.find("key39")->as_int(), 39);
}

TEST(Node, RenamingAnEntryOfALargeMapIsSeenByFind) {
  Node map = numbered_map(40);
  ASSERT_NE(map.find("key3"), nullptr);
  map.entries()[3].first = "renamed";
  EXPECT_EQ(map.find("key3"), nullptr);
  EXPECT_EQ(map.find("renamed")->as_int(), 3);
}

TEST(Node, NamesTheFirstDuplicate) {
  for (const int n : {3, 50}) {
    Node map = numbered_map(n);
    EXPECT_EQ(map.find_duplicate(), nullptr);
    map.entries().emplace_back("key1", Node::make_int(99));
    map.entries().emplace_back("key0", Node::make_int(98));
    ASSERT_NE(map.find_duplicate(), nullptr);
    EXPECT_EQ(map.find_duplicate()->first, "key1");
    EXPECT_EQ(map.find("key1")->as_int(), 1);
  }
}

TEST(Node, OriginPrintsWhatItKnows) {
  const auto source = std::make_shared<const std::string>("a.yaml");
  EXPECT_EQ((Origin{source, 3, 7}.str()), "a.yaml:3:7");
  EXPECT_EQ((Origin{source, 0, 0}.str()), "a.yaml");
  EXPECT_EQ(Origin{}.str(), "an unknown place");
}

}  // namespace
}  // namespace dovetail::core
