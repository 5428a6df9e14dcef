#include "core/cli/piece_json.hpp"

#include "core/base/utf8.hpp"

namespace dovetail::core {

void set_piece(Node& entry, std::string_view piece) {
  entry.set("piece", Node::make_string(replace_invalid_utf8(piece)));
  if (find_invalid_utf8(piece) == std::string_view::npos) return;
  Node bytes = Node::make_list();
  for (const char c : piece) bytes.items().push_back(Node::make_int(static_cast<unsigned char>(c)));
  entry.set("bytes", std::move(bytes));
}

}  // namespace dovetail::core
