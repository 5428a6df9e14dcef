// A case that has everything comes back from its file as it was. Bad files: tests/e2e/doctor.
#include "core/doctor/case_file.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <limits>

#include "core/base/json.hpp"

namespace dovetail::core {
namespace {

Attr attr(const char* key, uint32_t type) {
  Attr a;
  a.key = key;
  a.type = type;
  return a;
}

CaseFile everything() {
  CaseFile f;
  OpCase& c = f.op_case;
  c.steps = {{{}, {0, 1}, {1}}, {{}, {2}, {}}};
  c.inputs = {{1, "positions"}};
  c.fed = {{2, false, {2, 2}, {}}, {3, true, {}, {0.5F, -0.0F, 1e-38F}}};
  for (int i = 0; i < 12; ++i) c.fed[0].numbers.push_back(static_cast<float>(i) / 3.0F);
  const auto bytes = std::make_shared<std::vector<std::byte>>(24, std::byte{7});
  c.weights = {{4, "w.bf16", "bf16", "int4", {3, 4}, *bytes, bytes},
               {5, "w.packed", "int4.1", "", {16, 32}, *bytes, bytes}};
  dvt_state_spec spec{};
  spec.struct_size = sizeof spec;
  spec.kind = DVT_STATE_PAGED;
  spec.dtype = DVT_ACTIVATION;
  spec.ndim = 2;
  spec.dim[0] = 2;
  spec.dim[1] = 8;
  spec.rate = 1;
  spec.window = 9;
  spec.rewind = DVT_REWIND_ANY;
  spec.group = 3;
  c.states = {{6, "layers.0.k", spec}};
  Attr whole = attr("whole", DVT_ATTR_I64), part = attr("part", DVT_ATTR_F64),
       text = attr("text", DVT_ATTR_STR);
  whole.flags = DVT_ATTR_MUST;
  whole.i64 = {-1, std::numeric_limits<int64_t>::max()};
  part.f64 = {1e-6, 0.1, 3};
  text.str = "a \"text\"";
  c.nodes = {{"owner/op", 3, "layers.0.attn", {2, kNoValue, 4}, {7, 8}, {whole, part, text}}};
  c.wanted = {7};
  f.expected = {{1, 2, 3, 4, 5, 6}};
  f.tolerance = 2e-5;
  f.scope = "layers.0.attn";
  f.op = "owner/op";
  f.backend = "cpu";
  f.trusted = "reference";
  f.arch = "qwen3";
  f.params = Node::make_map();
  f.params.set("isa", Node::make_string("avx2"));
  f.kv_dtype = DVT_BF16;
  f.page_len = 32;
  return f;
}

std::string bytes_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(CaseFile, ComesBackAsItWas) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("case_file_test." + std::to_string(getpid()));
  const CaseFile a = everything();
  const Status written = write_case_file(path, a);
  ASSERT_TRUE(written) << written.message();
  const Result<CaseFile> read = read_case_file(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(read) << read.status().message();
  const CaseFile& b = *read;

  EXPECT_EQ(std::tie(a.tolerance, a.scope, a.op, a.backend, a.trusted, a.arch, a.kv_dtype,
                     a.page_len, a.expected),
            std::tie(b.tolerance, b.scope, b.op, b.backend, b.trusted, b.arch, b.kv_dtype,
                     b.page_len, b.expected));
  EXPECT_EQ(to_json(a.params), to_json(b.params));
  const OpCase &c = a.op_case, &d = b.op_case;
  EXPECT_EQ(c.wanted, d.wanted);
  ASSERT_EQ(d.steps.size(), 2u);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(std::tie(c.steps[i].tokens, c.steps[i].positions, c.steps[i].rows),
              std::tie(d.steps[i].tokens, d.steps[i].positions, d.steps[i].rows));
  ASSERT_EQ(d.inputs.size(), 1u);
  EXPECT_EQ(std::tie(c.inputs[0].val, c.inputs[0].name),
            std::tie(d.inputs[0].val, d.inputs[0].name));
  ASSERT_EQ(d.fed.size(), 2u);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(std::tie(c.fed[i].val, c.fed[i].is_of_rows, c.fed[i].tail, c.fed[i].numbers),
              std::tie(d.fed[i].val, d.fed[i].is_of_rows, d.fed[i].tail, d.fed[i].numbers));
  ASSERT_EQ(d.weights.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const OpCase::Weight &v = c.weights[i], &w = d.weights[i];
    EXPECT_EQ(std::tie(v.val, v.name, v.stored, v.wanted, v.shape),
              std::tie(w.val, w.name, w.stored, w.wanted, w.shape));
    EXPECT_EQ(bytes_of(v.bytes), bytes_of(w.bytes));
  }
  ASSERT_EQ(d.states.size(), 1u);
  EXPECT_EQ(std::tie(c.states[0].val, c.states[0].name),
            std::tie(d.states[0].val, d.states[0].name));
  const dvt_state_spec &s = c.states[0].spec, &t = d.states[0].spec;
  EXPECT_EQ(
      std::tie(s.kind, s.dtype, s.ndim, s.dim[0], s.dim[1], s.rate, s.window, s.rewind, s.group),
      std::tie(t.kind, t.dtype, t.ndim, t.dim[0], t.dim[1], t.rate, t.window, t.rewind, t.group));
  ASSERT_EQ(d.nodes.size(), 1u);
  const OpCase::Node &m = c.nodes[0], &n = d.nodes[0];
  EXPECT_EQ(std::tie(m.op, m.rev, m.scope, m.in, m.out),
            std::tie(n.op, n.rev, n.scope, n.in, n.out));
  ASSERT_EQ(n.attrs.size(), 3u);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(std::tie(m.attrs[i].key, m.attrs[i].type, m.attrs[i].flags, m.attrs[i].i64,
                       m.attrs[i].f64, m.attrs[i].str),
              std::tie(n.attrs[i].key, n.attrs[i].type, n.attrs[i].flags, n.attrs[i].i64,
                       n.attrs[i].f64, n.attrs[i].str));
}

}  // namespace
}  // namespace dovetail::core
