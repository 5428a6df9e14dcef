#include "core/hub/http.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>

#include "core/base/log.hpp"

namespace dovetail::core {
namespace {

constexpr long kMostRedirects = 10;
constexpr long kConnectSeconds = 15;

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

// Where trying again may help: the way there, not what is asked for.
bool may_pass(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_HTTP3:
    case CURLE_QUIC_CONNECT_ERROR:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
      return true;
    default:
      return false;
  }
}

bool may_pass(int64_t status) {
  return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504);
}

// "https://host:port" of a URL, for messages: what comes after may be a signed address, which is a secret.
std::string origin_of(const std::string& url) {
  const size_t host = url.find("://");
  return printable(url.substr(0, url.find('/', host == std::string::npos ? 0 : host + 3)));
}

}  // namespace

struct HttpClient::Transfer {
  CURL* curl;
  HttpBody& body;
  const std::function<bool()>& stopped;
  HttpReply reply;
  Status refused;  // by the body
  bool has_begun = false;

  Status begin() {
    has_begun = true;
    return body.begin(reply);
  }

  void take_header(std::string_view line) {
    if (line.starts_with(
            "HTTP/")) {  // a reply begins: of those before, only what the hub said stays
      reply.etag.clear();
      reply.length = reply.range_begin = std::nullopt;
      reply.is_encoded = false;
      return;
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    const std::string name = lower(line.substr(0, colon));
    std::string_view value = line.substr(colon + 1);
    while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
    while (!value.empty() && (value.back() == '\r' || value.back() == '\n' || value.back() == ' '))
      value.remove_suffix(1);
    if (name == "etag") reply.etag = value;
    if (name == "content-length") reply.length = number(value);
    if (name == "content-encoding") reply.is_encoded = lower(value) != "identity";
    if (name == "content-range" && lower(value).starts_with("bytes "))
      reply.range_begin = number(value.substr(6));
    if (name == "x-linked-etag" && reply.linked_etag.empty()) reply.linked_etag = value;
    if (name == "x-linked-size" && !reply.linked_size) reply.linked_size = number(value);
    if (name == "x-error-code") reply.error_code = value;
    if (name == "x-error-message") reply.error_message = value;
  }

  static size_t on_header(char* data, size_t, size_t n, void* self) {
    static_cast<Transfer*>(self)->take_header({data, n});
    return n;
  }

  static size_t on_body(char* data, size_t, size_t n, void* self) {
    auto& t = *static_cast<Transfer*>(self);
    if (t.stopped()) return 0;
    long status = 0;
    curl_easy_getinfo(t.curl, CURLINFO_RESPONSE_CODE, &status);
    t.reply.status = status;
    if (status != 200 && status != 206) return n;  // an error's page
    if (!t.has_begun) t.refused = t.begin();
    if (t.refused.is_ok()) t.refused = t.body.write({data, n});
    return t.refused.is_ok() ? n : 0;
  }

  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return static_cast<Transfer*>(self)->stopped() ? 1 : 0;
  }
};

Result<std::unique_ptr<HttpClient>> HttpClient::create(const HubAccess& access,
                                                       std::function<bool()> stopped) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  std::unique_ptr<HttpClient> client(new HttpClient);
  if (ready == CURLE_OK) client->curl_ = curl_easy_init();
  if (!client->curl_) return internal_error("libcurl does not start");
  client->access_ = access;
  client->stopped_ = std::move(stopped);
  CURL* curl = client->curl_;
  const auto set = [curl](CURLoption option, auto value) { curl_easy_setopt(curl, option, value); };
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_USERAGENT, "dovetail/" DVT_VERSION);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, access.endpoint.starts_with("https:") ? "https" : "http,https");
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, kMostRedirects);
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  // As they are, since sizes, ranges and checksums are those of the file; what is compressed all the same,
  // libcurl takes apart.
  set(CURLOPT_ACCEPT_ENCODING, "identity");
  set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(access.stall_seconds));
  set(CURLOPT_BUFFERSIZE, 1L << 18);
  if (!access.token.empty()) {
    set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BEARER));
    set(CURLOPT_XOAUTH2_BEARER, access.token.c_str());
  }
  if (!access.ca_file.empty()) set(CURLOPT_CAINFO, access.ca_file.c_str());
  if (!access.ca_folder.empty()) set(CURLOPT_CAPATH, access.ca_folder.c_str());
  return client;
}

HttpClient::~HttpClient() {
  if (curl_) curl_easy_cleanup(curl_);
}

HttpReply HttpClient::get(const HttpRequest& request, HttpBody& body) {
  CURL* curl = curl_;
  Transfer transfer{curl, body, stopped_, {}, {}};
  char said[CURL_ERROR_SIZE] = "";
  const auto set = [curl](CURLoption option, auto value) { curl_easy_setopt(curl, option, value); };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_ERRORBUFFER, said);
  set(CURLOPT_HEADERFUNCTION, Transfer::on_header);
  set(CURLOPT_HEADERDATA, static_cast<void*>(&transfer));
  set(CURLOPT_WRITEFUNCTION, Transfer::on_body);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, Transfer::on_progress);
  set(CURLOPT_XFERINFODATA, static_cast<void*>(&transfer));
  const std::string range = std::to_string(request.from) + "-";
  set(CURLOPT_RANGE, request.from > 0 ? range.c_str() : nullptr);
  curl_slist* headers = nullptr;
  if (request.from > 0 && !request.unchanged.empty())
    headers = curl_slist_append(nullptr, ("If-Range: " + request.unchanged).c_str());
  set(CURLOPT_HTTPHEADER, headers);

  const CURLcode code = curl_easy_perform(curl);

  HttpReply& reply = transfer.reply;
  long status = 0;
  curl_off_t retry_after = 0, connect_us = 0;
  char* last_url = nullptr;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &retry_after);
  curl_easy_getinfo(curl, CURLINFO_CONNECT_TIME_T, &connect_us);
  curl_easy_getinfo(curl, CURLINFO_EFFECTIVE_URL, &last_url);
  reply.status = status;
  reply.retry_after_s = static_cast<uint64_t>(std::max<curl_off_t>(0, retry_after));
  reply.is_connected = status != 0 || connect_us > 0;
  set(CURLOPT_HTTPHEADER, static_cast<curl_slist*>(nullptr));
  set(CURLOPT_ERRORBUFFER, static_cast<char*>(nullptr));
  curl_slist_free_all(headers);

  if (transfer.refused.is_ok() && code == CURLE_OK && !transfer.has_begun && reply.is_good())
    transfer.refused = transfer.begin();
  if (!transfer.refused.is_ok()) {
    reply.transfer = transfer.refused;
  } else if (stopped_()) {
    reply.transfer = {Code::kCancelled, "interrupted"};
  } else if (code != CURLE_OK) {
    const std::string why = printable(said[0] ? said : curl_easy_strerror(code));
    reply.transfer = io_error(origin_of(last_url ? last_url : request.url) + ": " + why);
    reply.may_pass = may_pass(code);
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
      reply.transfer = io_error(reply.transfer.message() +
                                "; the package ca-certificates has the usual authorities, "
                                "SSL_CERT_FILE names a file with others");
    if (code == CURLE_UNSUPPORTED_PROTOCOL)
      reply.transfer =
          io_error(reply.transfer.message() + " (a redirect from https may not leave it)");
  } else {
    reply.may_pass = may_pass(reply.status);
  }
  return reply;
}

std::string HttpClient::escaped(std::string_view text, bool keep_slashes) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
    if (is_plain || (c == '/' && keep_slashes))
      out += c;
    else
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  return out;
}

}  // namespace dovetail::core
