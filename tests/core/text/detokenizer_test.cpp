// The stream of a tokenizer table as the core uses it. The table is a fake whose ids are bytes: half
// characters wait for their other half, as the interface demands.
#include "core/text/detokenizer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace dovetail::core {
namespace {

struct FakeTokenizer {
  std::string held;
  uint32_t flags = 0;
  int n_streams = 0;
  uint64_t least_cap = UINT64_MAX;
  bool broken = false;
};
FakeTokenizer& of(void* p) {
  return *static_cast<FakeTokenizer*>(p);
}

dvt_code give(std::string_view text, char* out, uint64_t cap, uint64_t* need) {
  *need = text.size();
  if (text.size() > cap) return DVT_ETOOSMALL;
  if (!text.empty()) std::memcpy(out, text.data(), text.size());
  return DVT_OK;
}

dvt_code step(void* s, dvt_call* call, uint32_t id, char* out, uint64_t cap,
              uint64_t* need) noexcept {
  FakeTokenizer& t = of(s);
  t.least_cap = std::min(t.least_cap, cap);
  if (id > 255) {
    const std::string_view why = "no such id";
    call->fail(call, DVT_EINVAL, {why.data(), why.size()}, {});
    return DVT_EINVAL;
  }
  t.held += static_cast<char>(id);
  const auto lead = static_cast<unsigned char>(t.held[0]);
  const size_t n_bytes = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (t.held.size() < n_bytes) return give({}, out, cap, need);
  const dvt_code code = give(t.held, out, cap, need);
  t.held.clear();
  return code;
}

const dvt_tokenizer_v1* table() {
  static const dvt_tokenizer_v1 made = [] {
    dvt_tokenizer_v1 t{};
    t.struct_size = sizeof t;
    t.info = [](void* self, dvt_call*, dvt_tokenizer_info* out) noexcept -> dvt_code {
      if (of(self).broken) return DVT_EINTERNAL;
      out->n_ids = 256;
      out->max_step_bytes = 4;
      return DVT_OK;
    };
    t.stream_open = [](void* self, dvt_call*, uint32_t flags, void** s) noexcept -> dvt_code {
      of(self).flags = flags;
      ++of(self).n_streams;
      *s = self;
      return DVT_OK;
    };
    t.stream_step = step;
    t.stream_flush = [](void* s, dvt_call*, char* out, uint64_t cap,
                        uint64_t* need) noexcept -> dvt_code {
      const bool has_tail = !of(s).held.empty();
      of(s).held.clear();
      return give(has_tail ? "\xef\xbf\xbd" : "", out, cap, need);
    };
    t.stream_close = [](void* s) noexcept { --of(s).n_streams; };
    return t;
  }();
  return &made;
}

TEST(Detokenizer, GivesWholeCharactersAsTheyComplete) {
  FakeTokenizer tokenizer;
  {
    Result<std::unique_ptr<Detokenizer>> opened =
        Detokenizer::open(table(), &tokenizer, DVT_DEC_SKIP_SPECIAL);
    ASSERT_TRUE(opened);
    Detokenizer& d = **opened;
    EXPECT_EQ(tokenizer.n_streams, 1);
    EXPECT_EQ(tokenizer.flags, uint32_t{DVT_DEC_SKIP_SPECIAL});
    EXPECT_EQ(*d.step('a'), "a");
    EXPECT_EQ(*d.step(0xf0), "");
    EXPECT_EQ(*d.step(0x9f), "");
    EXPECT_EQ(*d.step(0x98), "");
    EXPECT_EQ(*d.step(0x8a), "😊");
    EXPECT_EQ(*d.step(0), std::string_view("\0", 1));
    EXPECT_EQ(*d.flush(), "");
    EXPECT_EQ(tokenizer.least_cap, 4u) << "the buffer is what the tokenizer asked for";
  }
  EXPECT_EQ(tokenizer.n_streams, 0) << "closed";
}

TEST(Detokenizer, GivesOneReplacementCharacterForABrokenTail) {
  FakeTokenizer tokenizer;
  const auto d = std::move(Detokenizer::open(table(), &tokenizer, 0)).value();
  EXPECT_EQ(*d->step(0xe4), "");
  EXPECT_EQ(*d->flush(), "\xef\xbf\xbd");
  EXPECT_EQ(*d->flush(), "");
}

// B013
TEST(Detokenizer, GivesTheTextOfShownTokensBehindWhatWasHeld) {
  FakeTokenizer tokenizer;
  const auto d =
      std::move(Detokenizer::open(table(), &tokenizer, DVT_DEC_SKIP_SPECIAL, {{300, "<tag>"}}))
          .value();
  EXPECT_EQ(*d->step('a'), "a");
  EXPECT_EQ(*d->step(300), "<tag>");
  EXPECT_EQ(*d->step(0xe4), "");
  EXPECT_EQ(*d->step(300), "\xef\xbf\xbd<tag>") << "the character was cut short";
  EXPECT_EQ(*d->step('b'), "b");
  EXPECT_FALSE(d->step(301)) << "the tokenizer's own matter";
}

TEST(Detokenizer, ReportsWhatTheTokenizerReports) {
  FakeTokenizer tokenizer;
  const auto d = std::move(Detokenizer::open(table(), &tokenizer, 0)).value();
  const Result<std::string_view> text = d->step(256);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.status().message(), "no such id");
  tokenizer.broken = true;
  EXPECT_FALSE(Detokenizer::open(table(), &tokenizer, 0));
  EXPECT_EQ(tokenizer.n_streams, 1);
}

}  // namespace
}  // namespace dovetail::core
