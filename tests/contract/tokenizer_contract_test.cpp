// What every tokenizer must do, tried on each one that the build made with its own fixtures:
// tests/plugins/tokenizer/NAME/contract/CASE/ holds a tokenizer.json that can write any text, with an added
// token that is special and one that is not, and whatever further files it takes.
#include <dovetail/abi/tokenizer.h>

#include <functional>
#include <random>
#include <thread>

#include "core/base/json.hpp"
#include "tests/contract/built_plugins.hpp"

namespace dovetail::core::test {
namespace {

// In NFC, so that a tokenizer that normalises gives them back.
const std::vector<std::string> kTexts = {
    "",
    "a",
    "It is a truth universally acknowledged, that a single man...",
    "  two  spaces\t\ttabs\n\n\nlines\r\nand more   ",
    "don't I'LL we've 12345 3.14 x=y+1;",
    "\xC3\xA9t\xC3\xA9 na\xC3\xAFve \xC3\x85ngstr\xC3\xB6m",
    "\xE4\xBD\xA0\xE5\xA5\xBD\xEF\xBC\x8C\xE4\xB8\x96\xE7\x95\x8C",
    "\xD9\x85\xD8\xB1\xD8\xAD\xD8\xA8\xD8\xA7 \xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D",
    "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB \xF0\x9F\x87\xA9\xF0\x9F\x87\xAA "
    "\xF0\x9F\x98\x8A",
    std::string("zero \0 inside", 13),
    "\x01\x02\x7f \xEF\xBF\xBD \xEF\xBB\xBF",
};

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<uint8_t>(text[i]);
    const size_t n = c < 0x80                ? 1
                     : c >= 0xC2 && c < 0xE0 ? 2
                     : c >= 0xE0 && c < 0xF0 ? 3
                     : c >= 0xF0 && c < 0xF5 ? 4
                                             : 0;
    if (n == 0 || i + n > text.size()) return false;
    for (size_t k = 1; k < n; ++k)
      if ((static_cast<uint8_t>(text[i + k]) & 0xC0) != 0x80) return false;
    i += n;
  }
  return true;
}

using Ids = std::vector<uint32_t>;

/// An opened tokenizer through its table, every call by the rule of cap and need.
class Opened {
 public:
  Opened(const LoadedPlugin& plugin, const Node& definition, const std::filesystem::path& folder)
      : table_(plugin.interface<dvt_tokenizer_v1>("dovetail.tokenizer/1")),
        options_(default_params(plugin)) {
    Result<Folder> opened = Folder::open(folder);
    EXPECT_TRUE(opened) << opened.status().message();
    if (!opened) return;
    scope_ = std::make_unique<HostScope>(std::move(*opened));
    const dvt_tokenizer_open in{sizeof in, 0, doc_handle(definition), scope_->dir(),
                                doc_handle(options_)};
    Frame call;
    code_ = table_->open(plugin.self, call, &in, &object_);
    reason_ = call.reason();
    if (code_ != DVT_OK) return;
    info_.struct_size = sizeof info_;
    expect_ok(table_->info(object_, call, &info_), call, "info");
  }
  ~Opened() {
    if (object_ != nullptr) table_->close(object_);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  dvt_code code() const { return code_; }
  const std::string& reason() const { return reason_; }
  const dvt_tokenizer_info& info() const { return info_; }
  const dvt_tokenizer_v1& table() const { return *table_; }
  void* get() const { return object_; }

  std::vector<dvt_tok> encode(std::string_view text, uint32_t flags = 0,
                              const std::vector<dvt_range>& literal = {}) const {
    Frame call;
    uint64_t need = 0;
    const dvt_code asked = table_->encode(object_, call, abi_text(text), literal.data(),
                                          literal.size(), flags, nullptr, 0, &need);
    EXPECT_EQ(asked, need == 0 ? DVT_OK : DVT_ETOOSMALL);
    (void)call.reason();
    std::vector<dvt_tok> out(need + 1);
    out.back().id = 4711;
    expect_ok(table_->encode(object_, call, abi_text(text), literal.data(), literal.size(), flags,
                             out.data(), need, &need),
              call, "encode");
    EXPECT_EQ(out.back().id, 4711u) << "wrote past cap";
    out.pop_back();
    return out;
  }
  Ids ids(std::string_view text, uint32_t flags = 0,
          const std::vector<dvt_range>& literal = {}) const {
    Ids out;
    for (const dvt_tok& t : encode(text, flags, literal)) out.push_back(t.id);
    return out;
  }
  std::string decode(const Ids& ids, uint32_t flags = 0) const {
    Frame call;
    uint64_t need = 0;
    (void)table_->decode(object_, call, ids.data(), ids.size(), flags, nullptr, 0, &need);
    (void)call.reason();
    std::string out(need, '?');
    expect_ok(
        table_->decode(object_, call, ids.data(), ids.size(), flags, out.data(), out.size(), &need),
        call, "decode");
    return out;
  }
  std::string piece(uint32_t id, uint32_t* flags) const {
    Frame call;
    uint64_t need = 0;
    (void)table_->piece(object_, call, id, flags, nullptr, 0, &need);
    (void)call.reason();
    std::string out(need, '?');
    *flags = 4711;
    expect_ok(table_->piece(object_, call, id, flags, out.data(), out.size(), &need), call,
              "piece");
    return out;
  }
  /// The parts that a stream gives, the last one from flush.
  std::vector<std::string> streamed(const Ids& ids, uint32_t flags = 0) const {
    Frame call;
    void* stream = nullptr;
    expect_ok(table_->stream_open(object_, call, flags, &stream), call, "stream_open");
    std::vector<std::string> out;
    std::string room(info_.max_step_bytes, '?');
    uint64_t need = 0;
    for (const uint32_t id : ids) {
      expect_ok(table_->stream_step(stream, call, id, room.data(), room.size(), &need), call,
                "stream_step");
      out.push_back(room.substr(0, need));
    }
    expect_ok(table_->stream_flush(stream, call, room.data(), room.size(), &need), call,
              "stream_flush");
    out.push_back(room.substr(0, need));
    table_->stream_close(stream);
    return out;
  }
  std::vector<uint8_t> identity() const {
    std::vector<uint8_t> out(32);
    Frame call;
    expect_ok(table_->identity(object_, call, out.data()), call, "identity");
    return out;
  }
  /// The added tokens: id, content, whether it is special.
  struct Added {
    uint32_t id;
    std::string content;
    bool special;
  };
  std::vector<Added> added() const {
    std::vector<Added> out;
    for (uint32_t id = 0; id < info_.n_ids; ++id) {
      Frame call;
      uint32_t flags = 0;
      uint64_t need = 0;
      const dvt_code code = table_->piece(object_, call, id, &flags, nullptr, 0, &need);
      if (code != DVT_OK && code != DVT_ETOOSMALL) continue;  // a hole in the ids
      const std::string content = piece(id, &flags);
      if (flags & DVT_PIECE_ADDED) out.push_back({id, content, (flags & DVT_PIECE_SPECIAL) != 0});
    }
    return out;
  }

 private:
  const dvt_tokenizer_v1* table_;
  Node options_;
  std::unique_ptr<HostScope> scope_;
  void* object_ = nullptr;
  dvt_code code_ = DVT_OK;
  std::string reason_;
  dvt_tokenizer_info info_{};
};

class TokenizerContract : public testing::TestWithParam<BuiltPlugin> {
 protected:
  void SetUp() override {
    plugin_ = ContractHost::get().load(GetParam());
    ASSERT_NE(plugin_, nullptr);
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(GetParam().fixture(), error)) {
      folders_.push_back(entry.path());
      Result<Node> definition =
          parse_json(read_text(entry.path() / "tokenizer.json"), "tokenizer.json");
      ASSERT_TRUE(definition) << definition.status().message();
      definitions_.push_back(std::move(*definition));
    }
    ASSERT_FALSE(folders_.empty())
        << "no fixture in " << GetParam().fixture() << "/*/tokenizer.json";
    before_ = ContractHost::get().live_bytes();
  }
  void TearDown() override {
    EXPECT_EQ(ContractHost::get().live_bytes(), before_) << "host memory is left behind";
  }

  /// Calls fn(tokenizer) for each fixture.
  template <class Fn>
  void each(Fn&& fn) {
    for (size_t i = 0; i < folders_.size(); ++i) {
      SCOPED_TRACE(folders_[i].string());
      const Opened opened(*plugin_, definitions_[i], folders_[i]);
      ASSERT_EQ(opened.code(), DVT_OK) << opened.reason();
      fn(opened);
    }
  }

  LoadedPlugin* plugin_ = nullptr;
  std::vector<std::filesystem::path> folders_;
  std::vector<Node> definitions_;
  uint64_t before_ = 0;
};

TEST_P(TokenizerContract, SaysHowLargeItIs) {
  each([](const Opened& t) {
    EXPECT_GE(t.info().n_ids, 2u);
    EXPECT_GE(t.info().max_step_bytes, 1u);
    const std::vector<Opened::Added> added = t.added();
    EXPECT_EQ(added.size(), t.info().n_added);
    EXPECT_TRUE(std::any_of(added.begin(), added.end(), [](const auto& a) { return a.special; }))
        << "the fixture has no special token";
    EXPECT_TRUE(std::any_of(added.begin(), added.end(), [](const auto& a) { return !a.special; }))
        << "the fixture has no plain added token";
  });
}

TEST_P(TokenizerContract, DecodesWhatItEncoded) {
  each([](const Opened& t) {
    for (const std::string& text : kTexts) {
      const std::vector<dvt_tok> tokens = t.encode(text);
      Ids ids;
      uint64_t at = 0;
      for (const dvt_tok& tok : tokens) {
        ids.push_back(tok.id);
        EXPECT_LT(tok.id, t.info().n_ids);
        EXPECT_LE(tok.begin, tok.end);
        EXPECT_LE(tok.end, text.size());
        EXPECT_GE(tok.begin, at) << "tokens out of order in \"" << text << "\"";
        at = tok.begin;
      }
      EXPECT_EQ(t.decode(ids), text);
      EXPECT_EQ(t.ids(text), ids) << "another time";
      if (!tokens.empty()) {
        EXPECT_EQ(tokens.front().begin, 0u) << text;
        EXPECT_EQ(tokens.back().end, text.size()) << text;
      }
    }
  });
}

TEST_P(TokenizerContract, StreamsWholeCharactersThatJoinToTheText) {
  std::mt19937 random(41);
  each([&](const Opened& t) {
    const auto check = [&](const Ids& ids, uint32_t flags) {
      std::string joined;
      for (const std::string& part : t.streamed(ids, flags)) {
        ASSERT_TRUE(is_utf8(part)) << "half a character";
        joined += part;
      }
      ASSERT_EQ(joined, t.decode(ids, flags));
    };
    for (const std::string& text : kTexts) check(t.ids(text), 0);
    for (int i = 0; i < 300;
         ++i) {  // any ids at all: broken characters, added tokens, ids that nothing has
      Ids ids(random() % 24);
      for (uint32_t& id : ids) id = random() % (i % 3 == 0 ? 200 : t.info().n_ids + 3);
      check(ids, i % 2 == 0 ? 0 : uint32_t{DVT_DEC_SKIP_SPECIAL});
    }
  });
}

TEST_P(TokenizerContract, GivesNothingForUnknownIds) {
  each([](const Opened& t) {
    const Ids ids = t.ids("known");
    Ids mixed = ids;
    mixed.insert(mixed.begin(), t.info().n_ids);
    mixed.push_back(UINT32_MAX);
    EXPECT_EQ(t.decode(mixed), "known");
    Frame call;
    uint32_t flags = 0;
    uint64_t need = 0;
    char room[64];
    expect_refused(t.table().piece(t.get(), call, t.info().n_ids, &flags, room, sizeof room, &need),
                   call, DVT_EINVAL, "piece");
    uint32_t id = 0;
    expect_refused(
        t.table().find(t.get(), call, abi_text("no token has this content, has it?"), &id), call,
        DVT_EINVAL, "find");
  });
}

TEST_P(TokenizerContract, AStepWithoutRoomDoesNothing) {
  each([](const Opened& t) {
    const Ids ids = t.ids("\xF0\x9F\x98\x8A and more");
    std::string expected = t.decode(ids), joined;
    Frame call;
    void* stream = nullptr;
    expect_ok(t.table().stream_open(t.get(), call, 0, &stream), call, "stream_open");
    std::string room(t.info().max_step_bytes, '?');
    uint64_t need = 0;
    for (const uint32_t id : ids) {
      EXPECT_EQ(
          t.table().stream_step(stream, call, id, room.data(), t.info().max_step_bytes - 1, &need),
          DVT_ETOOSMALL);
      (void)call.reason();
      expect_ok(t.table().stream_step(stream, call, id, room.data(), room.size(), &need), call,
                "stream_step");
      joined += room.substr(0, need);
    }
    EXPECT_EQ(t.table().stream_flush(stream, call, room.data(), 0, &need), DVT_ETOOSMALL);
    expect_ok(t.table().stream_flush(stream, call, room.data(), room.size(), &need), call,
              "stream_flush");
    joined += room.substr(0, need);
    t.table().stream_close(stream);
    EXPECT_EQ(joined, expected);
  });
}

TEST_P(TokenizerContract, StreamsLiveApart) {
  each([](const Opened& t) {
    const Ids a = t.ids("\xE4\xBD\xA0\xE5\xA5\xBD"), b = t.ids("\xF0\x9F\x98\x8A!");
    Frame call;
    void *one = nullptr, *two = nullptr;
    expect_ok(t.table().stream_open(t.get(), call, 0, &one), call, "stream_open");
    expect_ok(t.table().stream_open(t.get(), call, 0, &two), call, "stream_open");
    std::string room(t.info().max_step_bytes, '?'), first, second;
    uint64_t need = 0;
    for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      if (i < a.size()) {
        expect_ok(t.table().stream_step(one, call, a[i], room.data(), room.size(), &need), call,
                  "step");
        first += room.substr(0, need);
      }
      if (i < b.size()) {
        expect_ok(t.table().stream_step(two, call, b[i], room.data(), room.size(), &need), call,
                  "step");
        second += room.substr(0, need);
      }
    }
    t.table().stream_close(one);
    t.table().stream_close(two);
    EXPECT_EQ(first, t.decode(a));
    EXPECT_EQ(second, t.decode(b));
  });
}

TEST_P(TokenizerContract, MatchesAddedTokensUnlessTheyAreLiteral) {
  each([](const Opened& t) {
    for (const Opened::Added& a : t.added()) {
      SCOPED_TRACE(a.content);
      const auto has = [&a](const Ids& ids) { return std::count(ids.begin(), ids.end(), a.id); };
      EXPECT_EQ(t.ids(a.content), Ids{a.id});
      EXPECT_EQ(has(t.ids(a.content, DVT_ENC_ADDED_LITERAL)), 0);
      EXPECT_EQ(has(t.ids(a.content, DVT_ENC_SPECIAL_LITERAL)), a.special ? 0 : 1);
      EXPECT_EQ(t.decode(t.ids(a.content, DVT_ENC_ADDED_LITERAL)), a.content);
      // Only the second of three lies in a range that somebody wrote.
      const std::string text = a.content + a.content + a.content;
      const uint64_t n = a.content.size();
      EXPECT_EQ(has(t.ids(text)), 3);
      EXPECT_EQ(has(t.ids(text, 0, {{n, 2 * n}})), 2);
      EXPECT_EQ(t.decode(t.ids(text, 0, {{n, 2 * n}})), text);
      EXPECT_EQ(has(t.ids(text, 0, {{0, n}, {2 * n, 3 * n}})), 1);
      EXPECT_EQ(has(t.ids(a.content, 0, {{n - 1, n}})), 0) << "a token that is partly literal";
      uint32_t id = 4711;
      Frame call;
      expect_ok(t.table().find(t.get(), call, abi_text(a.content), &id), call, "find");
      EXPECT_EQ(id, a.id);
      const Ids around = [&] {
        Ids out = t.ids("x");
        out.push_back(a.id);
        return out;
      }();
      EXPECT_EQ(t.decode(around, DVT_DEC_SKIP_SPECIAL), a.special ? "x" : "x" + a.content);
    }
  });
}

TEST_P(TokenizerContract, RangesSayNothingAboutOtherText) {
  each([](const Opened& t) {
    for (const std::string& text : kTexts) {
      if (text.empty()) continue;
      EXPECT_EQ(t.ids(text, 0, {{0, text.size()}}), t.ids(text)) << text;
    }
  });
}

TEST_P(TokenizerContract, RepairsOrRefusesBrokenUtf8) {
  each([](const Opened& t) {
    for (const std::string& text :
         {std::string("a\xFF"
                      "b"),
          std::string("a\xE4\xBD"), std::string("\xC0\x80"), std::string("\xED\xA0\x80")}) {
      const std::string back = t.decode(t.ids(text));
      EXPECT_TRUE(is_utf8(back));
      EXPECT_NE(back.find("\xEF\xBF\xBD"), std::string::npos);
      Frame call;
      uint64_t need = 0;
      dvt_tok room[64];
      expect_refused(t.table().encode(t.get(), call, abi_text(text), nullptr, 0,
                                      DVT_ENC_STRICT_UTF8, room, 64, &need),
                     call, DVT_EINVAL, "broken UTF-8");
    }
    EXPECT_EQ(t.decode(t.ids("a\xFF"
                             "b")),
              "a\xEF\xBF\xBD"
              "b");
  });
}

TEST_P(TokenizerContract, EncodesOnAnyThread) {
  each([](const Opened& t) {
    std::vector<Ids> expected;
    for (const std::string& text : kTexts) expected.push_back(t.ids(text));
    std::vector<std::thread> threads;
    std::vector<int> wrong(4, 0);
    for (size_t n = 0; n < wrong.size(); ++n)
      threads.emplace_back([&, n] {
        for (int turn = 0; turn < 20; ++turn)
          for (size_t i = 0; i < kTexts.size(); ++i) {
            Frame call;
            uint64_t need = 0;
            std::vector<dvt_tok> room(256);
            wrong[n] += t.table().encode(t.get(), call, abi_text(kTexts[i]), nullptr, 0, 0,
                                         room.data(), room.size(), &need) != DVT_OK;
            wrong[n] += need != expected[i].size();
            for (size_t k = 0; k < std::min<size_t>(need, expected[i].size()); ++k)
              wrong[n] += room[k].id != expected[i][k];
          }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, std::vector<int>(wrong.size(), 0));
  });
}

TEST_P(TokenizerContract, HasOneIdentity) {
  for (size_t i = 0; i < folders_.size(); ++i) {
    const Opened one(*plugin_, definitions_[i], folders_[i]),
        two(*plugin_, definitions_[i], folders_[i]);
    ASSERT_EQ(one.code(), DVT_OK) << one.reason();
    EXPECT_EQ(one.identity(), two.identity());
    EXPECT_NE(one.identity(), std::vector<uint8_t>(32, 0));
  }
}

// Each part of the definition left out, or of another kind: taken or refused with a reason, and no crash.
TEST_P(TokenizerContract, SurvivesDamagedDefinitions) {
  size_t n_refused = 0;
  const auto attempt = [&](const Node& definition, size_t i, const std::string& what) {
    definition.build_index();
    const Opened t(*plugin_, definition, folders_[i]);
    if (t.code() == DVT_OK) {
      Frame call;
      uint64_t need = 0;
      const dvt_code asked =
          t.table().encode(t.get(), call, abi_text("any text"), nullptr, 0, 0, nullptr, 0, &need);
      if (asked != DVT_EINVAL) return (void)t.decode(t.ids("any text"));
      // Without its unknown token it may have none for this text.
      EXPECT_FALSE(call.reason().empty()) << what << ": refused the text without a reason";
      return;
    }
    ++n_refused;
    EXPECT_FALSE(t.reason().empty()) << what << ": refused without a reason";
    EXPECT_TRUE(t.code() == DVT_EINVAL || t.code() == DVT_EFORMAT || t.code() == DVT_EUNSUPPORTED)
        << what << ": " << t.code();
  };
  for (size_t i = 0; i < folders_.size(); ++i) {
    for (const Node& nothing :
         {Node(), Node::make_list(), Node::make_map(), Node::make_string("x")}) {
      const size_t before = n_refused;
      attempt(nothing, i, nothing.kind_name());
      EXPECT_EQ(n_refused, before + 1) << nothing.kind_name() << " is no definition";
    }
    const auto parts_of = [&](const Node& whole, const std::function<Node*(Node&)>& find,
                              const std::string& name) {
      Node copy = whole;
      const size_t n = find(copy)->entries().size();
      for (size_t k = 0; k < n; ++k)
        for (int how = 0; how < 4; ++how) {
          Node changed = whole;
          std::vector<Node::Entry>& entries = find(changed)->entries();
          const std::string what = name + entries[k].first;
          if (how == 0) entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(k));
          if (how == 1) entries[k].second = Node::make_int(-7);
          if (how == 2) entries[k].second = Node::make_string("wrong");
          if (how == 3) entries[k].second = Node::make_list();
          attempt(changed, i, what);
        }
    };
    parts_of(
        definitions_[i], [](Node& n) { return &n; }, "");
    for (const auto& [key, value] : definitions_[i].entries())
      if (value.is_map())
        parts_of(
            definitions_[i], [key = key](Node& n) { return n.find(key); }, key + ".");
  }
}

INSTANTIATE_TEST_SUITE_P(Built, TokenizerContract, testing::ValuesIn(built_plugins("tokenizer")),
                         test_name);

}  // namespace
}  // namespace dovetail::core::test
