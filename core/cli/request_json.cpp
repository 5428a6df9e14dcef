#include "core/cli/request_json.hpp"

#include <iostream>
#include <iterator>
#include <memory>

#include "core/base/files.hpp"
#include "core/base/json.hpp"

namespace dovetail::core {

Result<Node> parse_request(std::string_view text, const std::string& where) {
  Result<Node> parsed = parse_json(text, where);
  if (!parsed && parsed.status().code() == Code::kFormat) return invalid(parsed.status().message());
  return parsed;
}

Result<Node> read_request(const std::string& path) {
  if (path == "-")
    return parse_request(std::string(std::istreambuf_iterator<char>(std::cin), {}),
                         "standard input");
  DVT_TRY(const std::shared_ptr<File> file, File::open(path));
  DVT_TRY(const std::string text, file->read_all());
  return parse_request(text, path);
}

}  // namespace dovetail::core
