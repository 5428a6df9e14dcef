#include "core/hub/access.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "core/base/files.hpp"
#include "core/base/log.hpp"

namespace dovetail::core {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHub = "https://huggingface.co";
constexpr const char* kCaFiles[] = {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"};

std::string value_of(const Environment& environment, const std::string& name) {
  return environment(name).value_or("");
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

bool is_on(const Environment& environment, const std::string& name) {
  std::string value = trimmed(value_of(environment, name));
  std::transform(value.begin(), value.end(), value.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

fs::path token_file(const Environment& environment) {
  if (const std::string path = value_of(environment, "HF_TOKEN_PATH"); !path.empty()) return path;
  if (const std::string home = value_of(environment, "HF_HOME"); !home.empty())
    return fs::path(home) / "token";
  if (const std::string cache = value_of(environment, "XDG_CACHE_HOME"); !cache.empty())
    return fs::path(cache) / "huggingface" / "token";
  const std::string home = value_of(environment, "HOME");
  return home.empty() ? fs::path() : fs::path(home) / ".cache" / "huggingface" / "token";
}

Result<std::string> find_token(const Environment& environment) {
  std::string token, source = "HF_TOKEN";
  if (!is_on(environment, "HF_HUB_DISABLE_IMPLICIT_TOKEN")) {
    token = trimmed(value_of(environment, source));
    const fs::path path = token_file(environment);
    std::error_code error;
    if (token.empty() && !path.empty() && fs::exists(path, error)) {
      source = path.string();
      DVT_TRY(const std::shared_ptr<File> file, File::open(path));
      DVT_TRY(token, file->read_all(1 << 16));
      token = trimmed(token);
    }
  }
  for (const char c : token)
    if (c <= ' ' || c > '~')
      return invalid(source + ": the token has a blank or a control character in it");
  return token;
}

Result<std::string> find_endpoint(const Environment& environment) {
  std::string endpoint = trimmed(value_of(environment, "HF_ENDPOINT"));
  if (endpoint.empty()) endpoint = kHub;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const bool is_url = endpoint.starts_with("https://") || endpoint.starts_with("http://");
  if (!is_url || endpoint.find_first_of(" \t\r\n?#") != std::string::npos)
    return invalid("HF_ENDPOINT is \"" + printable(endpoint) + "\", expected a URL such as " +
                   kHub);
  return endpoint;
}

}  // namespace

Result<HubAccess> hub_access(const Environment& environment) {
  HubAccess out;
  DVT_TRY(out.endpoint, find_endpoint(environment));
  DVT_TRY(out.token, find_token(environment));
  std::error_code error;
  for (const char* name : kCaFiles) {
    const std::string path = value_of(environment, name);
    if (path.empty()) continue;
    if (fs::is_directory(path, error)) {
      out.ca_folder = path;
    } else if (fs::exists(path, error)) {
      out.ca_file = path;
    } else {
      return invalid(std::string(name) + " is \"" + printable(path) +
                     "\", where there is no file of certificates");
    }
    break;
  }
  if (const std::string folder = value_of(environment, "SSL_CERT_DIR"); !folder.empty())
    out.ca_folder = folder;
  out.is_offline = is_on(environment, "HF_HUB_OFFLINE");
  if (const std::string text = trimmed(value_of(environment, "HF_HUB_DOWNLOAD_TIMEOUT"));
      !text.empty()) {
    const char* end = text.data() + text.size();
    const auto [stop, fault] = std::from_chars(text.data(), end, out.stall_seconds);
    if (fault != std::errc() || stop != end || out.stall_seconds < 1 || out.stall_seconds > 86400)
      return invalid("HF_HUB_DOWNLOAD_TIMEOUT is \"" + printable(text) +
                     "\", expected seconds from 1 to 86400");
  }
  return out;
}

void take_upper_case_proxy() {
  const char* upper = std::getenv("HTTP_PROXY");
  if (upper) setenv("http_proxy", upper, /*overwrite=*/0);
}

}  // namespace dovetail::core
