// components.jsonl: every normalizer, pre-tokenizer, decoder and complete small tokenizer of the
// reference's vectors. None is left out.
#include <gtest/gtest.h>

#include "json_support.hpp"
#include "plugins/tokenizer/bpe/byte_symbols.hpp"
#include "plugins/tokenizer/bpe/decoder.hpp"
#include "plugins/tokenizer/bpe/error.hpp"
#include "plugins/tokenizer/bpe/normalizer.hpp"
#include "plugins/tokenizer/bpe/utf8.hpp"

namespace dovetail::bpe::test {
namespace {

using Ids = std::vector<uint32_t>;
using Offsets = std::vector<std::pair<uint64_t, uint64_t>>;  // in code points

// Calls fn(name, config, case) for every case of a kind and says how many groups and cases there were.
template <class Fn>
std::pair<int, int> for_each_case(const char* kind, Fn&& fn) {
  int n_groups = 0, n_cases = 0;
  for (const Node& group : vectors("components.jsonl")) {
    if (group.find("kind")->as_string() != kind) continue;
    ++n_groups;
    const std::string& name = group.find("name")->as_string();
    SCOPED_TRACE(name);
    for (const Node& c : group.find("cases")->items()) {
      ++n_cases;
      fn(name, *group.find("config"), c);
    }
  }
  return {n_groups, n_cases};
}

std::vector<std::string> strings_of(const Node& list) {
  std::vector<std::string> out;
  for (const Node& n : list.items()) out.push_back(n.as_string());
  return out;
}

Offsets offsets_of(const Node& list) {
  Offsets out;
  for (const Node& n : list.items()) {
    out.emplace_back(n.items()[0].as_int(), n.items()[1].as_int());
  }
  return out;
}

uint64_t code_points_before(std::string_view text, uint64_t pos) {
  uint64_t n = 0;
  for (uint64_t i = 0; i < pos; ++i) n += (static_cast<uint8_t>(text[i]) & 0xC0) != 0x80;
  return n;
}

TEST(Components, EveryNormalizerAgreesWithTheReference) {
  RegexScratch regex;
  const auto n = for_each_case("normalizer", [&](auto&, const Node& config, const Node& c) {
    const Normalizer normalizer = Normalizer::from_json(view(config), "normalizer");
    const std::string& text = c.find("in")->as_string();
    LayerStack layers;
    EXPECT_EQ(normalizer.apply({text}, &layers, &regex).text, c.find("out")->as_string()) << text;
  });
  EXPECT_EQ(n, std::pair(21, 229));
}

TEST(Components, EveryPreTokenizerAgreesWithTheReference) {
  CutScratch scratch;
  const auto n = for_each_case("pre_tokenizer", [&](auto&, const Node& config, const Node& c) {
    for (const bool symbols_left_out : {true, false}) {
      PreTokenizer p = PreTokenizer::from_json(view(config), "pre_tokenizer");
      if (!symbols_left_out) p.write_byte_symbols();
      const std::string& text = c.find("in")->as_string();
      LayerStack layers;
      const MappedText cut = p.cut({text}, &layers, &scratch);
      std::vector<std::string> pieces;
      Offsets offsets;
      for (const Piece& piece : scratch.pieces) {
        pieces.emplace_back(cut.text.substr(piece.begin, piece.end - piece.begin));
        if (p.byte_level()) {
          std::string symbols;
          append_symbols(pieces.back(), &symbols);
          pieces.back() = symbols;
        }
        offsets.emplace_back(code_points_before(text, cut.to_original(piece.begin)),
                             code_points_before(text, cut.to_original(piece.end)));
      }
      EXPECT_EQ(pieces, strings_of(*c.find("out"))) << text;
      EXPECT_EQ(offsets, offsets_of(*c.find("offsets"))) << text;
    }
  });
  EXPECT_EQ(n, std::pair(56, 387));
}

TEST(Components, EveryDecoderAgreesWithTheReferenceAtOnceAndStreaming) {
  const auto n = for_each_case("decoder", [&](auto&, const Node& config, const Node& c) {
    // The tokens of the case become the vocabulary; the same string twice is the same id.
    Vocabulary vocabulary;
    Ids ids;
    for (const Node& token : c.find("in")->items()) {
      if (vocabulary.find(token.as_string()) == kNoId)
        vocabulary.add(token.as_string(), vocabulary.n_ids());
      ids.push_back(vocabulary.find(token.as_string()));
    }
    const Decoder d = Decoder::from_json(view(config), "decoder", vocabulary, AddedTokens());
    EXPECT_EQ(d.decode(ids, false), c.find("out")->as_string());
    DecodeStream stream(d, false);
    std::string streamed;
    for (const uint32_t id : ids) {
      const std::string step = stream.step(id);
      EXPECT_EQ(valid_utf8_prefix(step), step.size());
      EXPECT_LE(step.size(), d.max_step_bytes());
      streamed += step;
    }
    streamed += stream.flush();
    EXPECT_EQ(streamed, c.find("out")->as_string());
  });
  EXPECT_EQ(n, std::pair(15, 58));
}

// Spans of ours tile the text. The reference's may overlap, where tokens share a character, and are
// of what is left, where characters vanished; elsewhere both agree.
void expect_offsets(const Encoding& got, const Node& c) {
  const Offsets expected = offsets_of(*c.find("offsets"));
  const Node* pair = c.find("pair");
  ASSERT_EQ(got.tokens.size(), expected.size());
  for (size_t i = 0; i < got.tokens.size(); ++i) {
    // Texts of pairs are told apart by their types here, which all of the vectors do.
    const bool is_second = pair != nullptr && got.type_ids[i] == 1;
    const std::string& text = is_second ? pair->as_string() : c.find("in")->as_string();
    const auto [id, flags, begin, end] = got.tokens[i];
    const auto is_inside_char = [&](uint64_t pos) {
      return pos < text.size() && (static_cast<uint8_t>(text[pos]) & 0xC0) == 0x80;
    };
    if (got.is_added[i]) {
      EXPECT_EQ(expected[i], std::pair(uint64_t{0}, uint64_t{0}));
    } else if (begin != end && !is_inside_char(begin) && !is_inside_char(end)) {
      EXPECT_EQ(std::pair(code_points_before(text, begin), code_points_before(text, end)),
                expected[i])
          << i;
    }
  }
}

void expect_encoding(const Tokenizer& t, const Node& c, const Encoding& got) {
  Ids ids;
  for (const Token& token : got.tokens) ids.push_back(token.id);
  EXPECT_EQ(ids, ids_of(*c.find("ids")));
  EXPECT_EQ(got.type_ids, ids_of(*c.find("type_ids")));
  EXPECT_EQ(Ids(got.is_added.begin(), got.is_added.end()), ids_of(*c.find("special_tokens_mask")));
  EXPECT_EQ(Ids(got.is_attended.begin(), got.is_attended.end()), ids_of(*c.find("attention_mask")));
  if (const Node* overflowing = c.find("overflowing")) {
    ASSERT_EQ(got.overflowing.size(), overflowing->items().size());
    for (size_t i = 0; i < got.overflowing.size(); ++i) {
      Ids part;
      for (const Token& token : got.overflowing[i].tokens) part.push_back(token.id);
      EXPECT_EQ(part, ids_of(overflowing->items()[i]));
    }
  }
  EXPECT_EQ(t.decoder().decode(ids, false), c.find("decoded")->as_string());
  EXPECT_EQ(t.decoder().decode(ids, true), c.find("decoded_skip")->as_string());
}

TEST(Components, EveryTokenizerAgreesWithTheReference) {
  const auto n =
      for_each_case("tokenizer", [&](const std::string& name, const Node& config, const Node& c) {
        const Tokenizer t(view(config));
        const std::string& text = c.find("in")->as_string();
        SCOPED_TRACE(text);
        const Node* opt = c.find("opt");
        const Node* add = opt == nullptr ? nullptr : opt->find("add_special_tokens");
        const EncodeOptions options{.add_special = add == nullptr || add->as_bool()};
        std::optional<std::string_view> pair;
        if (const Node* second = c.find("pair")) pair = second->as_string();
        if (c.find("error") != nullptr) {
          EXPECT_THROW((void)t.encode_fully(text, pair, options), Error);
          return;
        }
        const Encoding got = t.encode_fully(text, pair, options);
        expect_encoding(t, c, got);
        if (name != "no unk token: unknown characters vanish") expect_offsets(got, c);
        // What the engine gets is the same where there is one text and nothing is cut or padded.
        if (pair || !config.find("truncation")->is_null() || !config.find("padding")->is_null())
          return;
        EXPECT_EQ(encode(t, text, options), ids_of(*c.find("ids")));
      });
  EXPECT_EQ(n, std::pair(36, 151));
}

}  // namespace
}  // namespace dovetail::bpe::test
