// Files of a safetensors header and zeros, and the reader over a folder of them.
#pragma once

#include <string>
#include <string_view>

#include "tests/plugins/format/reader_test.hpp"

namespace dovetail::core {

class ReaderTest : public FormatReaderTest {
 protected:
  /// A file of this header and n_data zero bytes.
  static std::string file_of(std::string_view header, size_t n_data) {
    std::string out;
    for (uint64_t n = header.size(), i = 0; i < 8; ++i) out += static_cast<char>(n >> 8 * i & 0xff);
    return out.append(header).append(n_data, '\0');
  }
  /// The message with which a single file of this header is refused; "" if it is not.
  std::string refusal(std::string_view header, size_t n_data = 0) {
    return refusal_of_bytes(file_of(header, n_data));
  }
  std::string refusal_of_bytes(std::string_view bytes) {
    write("model.safetensors", bytes);
    const Status s = open();
    EXPECT_EQ(s.message().find('\n'), std::string::npos) << s.message();
    if (!s.is_ok()) {
      EXPECT_EQ(s.code(), Code::kFormat) << s.message();
      EXPECT_NE(s.message().find("model.safetensors"), std::string::npos) << s.message();
    }
    return s.message();
  }
};

}  // namespace dovetail::core
