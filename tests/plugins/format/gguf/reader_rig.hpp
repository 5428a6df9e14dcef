// GGUF files made of values, and the reader over a folder of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.hpp"
#include "tests/plugins/format/reader_test.hpp"

namespace dovetail::core {

/// Bytes of numbers and strings, little-endian.
template <class T>
std::string raw(T v) {
  return {reinterpret_cast<const char*>(&v), sizeof v};
}
inline std::string text(std::string_view s) {
  return raw(uint64_t{s.size()}) + std::string(s);
}

/// A file that is being made; each part can be made wrong.
struct GgufFile {
  std::string magic = "GGUF";
  uint32_t version = 3;
  std::string pairs, infos, data;
  uint64_t n_pairs = 0, n_tensors = 0;
  size_t alignment = 32;

  /// type: of values; body: the bytes after it.
  GgufFile& pair(std::string_view key, uint32_t type, const std::string& body) {
    pairs += text(key) + raw(type) + body;
    ++n_pairs;
    return *this;
  }
  GgufFile& u32(std::string_view key, uint32_t v) { return pair(key, 4, raw(v)); }
  GgufFile& f32(std::string_view key, float v) { return pair(key, 6, raw(v)); }
  GgufFile& flag(std::string_view key, bool v) {
    return pair(key, 7, raw(static_cast<uint8_t>(v)));
  }
  GgufFile& string(std::string_view key, std::string_view v) { return pair(key, 8, text(v)); }
  GgufFile& strings(std::string_view key, const std::vector<std::string>& all) {
    std::string body = raw(uint32_t{8}) + raw(uint64_t{all.size()});
    for (const std::string& s : all) body += text(s);
    return pair(key, 9, body);
  }
  template <class T>
  GgufFile& numbers(std::string_view key, uint32_t element, const std::vector<T>& all) {
    std::string body = raw(element) + raw(uint64_t{all.size()});
    for (const T v : all) body += raw(v);
    return pair(key, 9, body);
  }
  /// ne: as the file has it, innermost first.
  GgufFile& info(std::string_view name, const std::vector<uint64_t>& ne, uint32_t type,
                 uint64_t offset) {
    infos += text(name) + raw(static_cast<uint32_t>(ne.size()));
    for (const uint64_t d : ne) infos += raw(d);
    infos += raw(type) + raw(offset);
    ++n_tensors;
    return *this;
  }
  /// With its data, at the next multiple of the alignment.
  GgufFile& tensor(std::string_view name, const std::vector<uint64_t>& ne, uint32_t type,
                   const std::string& bytes) {
    data.resize((data.size() + alignment - 1) / alignment * alignment);
    info(name, ne, type, data.size());
    data += bytes;
    return *this;
  }
  std::string bytes() const {
    std::string out = magic + raw(version) + raw(n_tensors) + raw(n_pairs) + pairs + infos;
    if (!data.empty()) out.resize((out.size() + alignment - 1) / alignment * alignment);
    return out + data;
  }
};

/// Keys that a config needs.
inline GgufFile model_of(const std::string& arch) {
  GgufFile f;
  f.string("general.architecture", arch);
  f.u32(arch + ".block_count", 2)
      .u32(arch + ".embedding_length", 64)
      .u32(arch + ".feed_forward_length", 96);
  f.u32(arch + ".attention.head_count", 4).u32(arch + ".attention.head_count_kv", 2);
  f.u32(arch + ".context_length", 512).f32(arch + ".attention.layer_norm_rms_epsilon", 1e-6f);
  return f.f32(arch + ".rope.freq_base", 1e6f);
}

class GgufTest : public FormatReaderTest {
 protected:
  /// The message with which a file is refused; "" if it is not.
  std::string refusal(const GgufFile& file) { return refusal_of_bytes(file.bytes()); }
  std::string refusal_of_bytes(std::string_view bytes) {
    write("m.gguf", bytes);
    const Status s = open();
    EXPECT_EQ(s.message().find('\n'), std::string::npos) << s.message();
    if (!s.is_ok()) {
      EXPECT_NE(s.message().find("m.gguf: "), std::string::npos) << s.message();
      EXPECT_TRUE(s.code() == Code::kFormat || s.code() == Code::kUnsupported) << s.message();
    }
    return s.message();
  }
  Result<const Node*> document(const std::string& which) {
    CallFrame call;
    dvt_doc out = 0;
    DVT_TRY(call.check(table_->document(reader_, call, abi_text(which), &out)));
    return doc_node(out);
  }
  /// As JSON; "" without the document, what was wrong if it is refused.
  std::string json(const std::string& which) {
    const Result<const Node*> doc = document(which);
    if (!doc) return doc.status().message();
    return *doc ? to_json(**doc) : std::string();
  }
  /// Of a file with these keys.
  std::string json_of(const GgufFile& file, const std::string& which) {
    EXPECT_EQ(refusal(file), "");
    return json(which);
  }
  uint32_t probe(const std::string& file, const std::string& head) {
    Result<Folder> folder = Folder::open(dir_);
    EXPECT_TRUE(folder);
    HostScope scope(std::move(*folder));
    dvt_format_open in{sizeof in, 0, scope.dir(), 0};
    if (!file.empty()) in.file = *scope.open_file(file);
    uint32_t score = 4711;
    CallFrame call;
    EXPECT_EQ(table_->probe(plugin_, call, &in, {head.data(), head.size()}, &score), DVT_OK);
    return score;
  }
};

}  // namespace dovetail::core
