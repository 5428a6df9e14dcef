#include "core/hub/access.hpp"

#include <gtest/gtest.h>

#include <map>

namespace dovetail::core {
namespace {

Result<HubAccess> access(const std::map<std::string, std::string>& variables) {
  return hub_access([&](const std::string& name) -> std::optional<std::string> {
    const auto it = variables.find(name);
    return it == variables.end() ? std::nullopt : std::optional(it->second);
  });
}

TEST(HubAccess, OfAnEmptyEnvironmentIsThePublicHub) {
  const Result<HubAccess> a = access({});
  ASSERT_TRUE(a) << a.status().message();
  EXPECT_EQ(a->endpoint, "https://huggingface.co");
  EXPECT_EQ(a->token + a->ca_file + a->ca_folder, "");
  EXPECT_FALSE(a->is_offline);
  EXPECT_EQ(a->stall_seconds, 10u);
}

TEST(HubAccess, TakesWhatTheHubsToolsTake) {
  const Result<HubAccess> a = access({{"HF_ENDPOINT", " http://mirror:8080/hf// "},
                                      {"HF_TOKEN", "hf_x\n"},
                                      {"HF_HUB_OFFLINE", "yes"},
                                      {"HF_HUB_DOWNLOAD_TIMEOUT", "60"},
                                      {"SSL_CERT_DIR", "/certs"}});
  ASSERT_TRUE(a) << a.status().message();
  EXPECT_EQ(a->endpoint, "http://mirror:8080/hf");
  EXPECT_EQ(a->token, "hf_x");
  EXPECT_TRUE(a->is_offline);
  EXPECT_EQ(a->stall_seconds, 60u);
  EXPECT_EQ(a->ca_folder, "/certs");
  EXPECT_FALSE(access({{"HF_HUB_OFFLINE", "0"}})->is_offline);
  EXPECT_EQ(access({{"HF_TOKEN", "x"}, {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"}})->token, "");
}

TEST(HubAccess, RefusesWhatIsNoUrlTokenOrNumber) {
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"HF_ENDPOINT", "huggingface.co"}, {"HF_TOKEN", "a b"}, {"SSL_CERT_FILE", "/nowhere/x"}})
    EXPECT_EQ(access({{name, value}}).status().code(), Code::kInvalid) << name;
  for (const char* value : {"0", "-1", "1.5", "10s", "99999999999"})
    EXPECT_EQ(access({{"HF_HUB_DOWNLOAD_TIMEOUT", value}}).status().code(), Code::kInvalid)
        << value;
}

}  // namespace
}  // namespace dovetail::core
