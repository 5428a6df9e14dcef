// The functions of dvt_host_v1, each a thin translation between the C table and the core.
#pragma once

#include <string>

#include "core/plugin/host.hpp"

namespace dovetail::core {

/// One plugin's view of the host; `self` of its table.
struct HostServices::Client {
  HostServices* host = nullptr;
  std::string plugin;
  dvt_host_v1 table{};
};

struct HostTable {
  static dvt_host_v1 make(HostServices::Client* client);
};

}  // namespace dovetail::core
