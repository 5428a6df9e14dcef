// HttpClient: GET over libcurl, as far as a hub needs it.
//
// Redirects are followed; the token goes to the hub's own host, port and protocol alone, and an https hub may
// not lead to http. Proxies are those of http_proxy, https_proxy, all_proxy and no_proxy.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/status.hpp"
#include "core/hub/access.hpp"

namespace dovetail::core {

struct HttpRequest {
  std::string url;
  uint64_t from = 0;  // 0: all of it; else the bytes from here on
  std::string
      unchanged;  // with `from`: an ETag; of another version all bytes are wanted (If-Range)
};

struct HttpReply {
  int64_t status = 0;                           // 0: none came
  std::string etag;                             // as it came, with its quotes
  std::optional<uint64_t> length, range_begin;  // of the body; where a 206 begins
  bool is_encoded = false;                      // compressed on the way: byte ranges mean nothing
  uint64_t retry_after_s = 0;
  // What the hub said on the way, before it sent us on to where the bytes are.
  std::string linked_etag;
  std::optional<uint64_t> linked_size;
  std::string error_code, error_message;

  Status transfer;            // why it did not arrive whole
  bool may_pass = false;      // the transfer, or the status, may be better in a moment
  bool is_connected = false;  // somebody was there

  bool is_good() const { return transfer.is_ok() && (status == 200 || status == 206); }
};

/// Takes a body as it comes, of replies 200 and 206 alone; a Status ends the transfer.
class HttpBody {
 public:
  HttpBody() = default;
  HttpBody(const HttpBody&) = delete;
  HttpBody& operator=(const HttpBody&) = delete;
  virtual ~HttpBody() = default;
  /// Before the first byte, and where there is none.
  virtual Status begin(const HttpReply& reply) = 0;
  virtual Status write(std::string_view bytes) = 0;
};

class HttpClient {
 public:
  /// `stopped` is asked often and ends a transfer.
  /// errors  kInternal
  static Result<std::unique_ptr<HttpClient>> create(const HubAccess& access,
                                                    std::function<bool()> stopped);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Whatever happens is in the reply; what `body` refused, with its own Status and no hope.
  /// threads  one call at a time
  HttpReply get(const HttpRequest& request, HttpBody& body);

  /// `text` for a URL: all but letters, digits and "-._~" as %XX; "/" too unless it is kept.
  static std::string escaped(std::string_view text, bool keep_slashes);

 private:
  struct Transfer;
  HttpClient() = default;

  void* curl_ = nullptr;
  HubAccess access_;
  std::function<bool()> stopped_;
};

}  // namespace dovetail::core
