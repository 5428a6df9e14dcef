// HubAccess: where the hub is and who asks, as the environment says.
//
// The variables are those of the hub's own Python library, so that a machine set up for one serves the
// other.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.hpp"
#include "core/config/variables.hpp"

namespace dovetail::core {

struct HubAccess {
  std::string endpoint;     // "https://huggingface.co": no slash at its end
  std::string token;        // empty: none
  std::string ca_file;      // certificates to trust instead of the system's; empty: the system's
  std::string ca_folder;    // the same as a folder
  bool is_offline = false;  // no connection may be made
  uint32_t stall_seconds = 10;  // without a byte, after which a connection is given up
};

/// HF_ENDPOINT; HF_TOKEN, else the file HF_TOKEN_PATH, HF_HOME/token or ~/.cache/huggingface/token, unless
/// HF_HUB_DISABLE_IMPLICIT_TOKEN says not to; SSL_CERT_FILE, REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE, and
/// SSL_CERT_DIR; HF_HUB_OFFLINE; HF_HUB_DOWNLOAD_TIMEOUT.
/// errors  kInvalid: one of them is not what it should be. kIo: the token's file cannot be read.
Result<HubAccess> hub_access(const Environment& environment);

/// libcurl reads http_proxy, but not HTTP_PROXY, which a request's header could set where a program runs as
/// CGI. This is no such program, and users set either: the upper-case one counts where the other is not set.
/// Call it before any thread is started.
void take_upper_case_proxy();

}  // namespace dovetail::core
