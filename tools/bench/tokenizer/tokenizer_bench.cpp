// How fast the BPE tokenizer is on one core: MB of text a second for loading, encoding, decoding.
//
//   tokenizer_bench TOKENIZER.json TEXT
//   tokenizer_bench --lengths TOKENIZER.json
//   tokenizer_bench --on-request TOKENIZER.json TEXT IDS
//
// The first prints the best of several runs, cold (a first pass over the text) and with a warm word cache, the
// two ways to split, and the time per byte on texts that are hard on a merger. The second prints that time for 1 to 8 MiB
// of texts without a space, as they are and as one piece whatever the pre-tokenizer makes of them.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/tokenizer/bpe/utf8.hpp"
#include "tests/plugins/tokenizer/bpe/json_support.hpp"

namespace {

using dovetail::bpe::Token;
using dovetail::bpe::Tokenizer;
namespace test = dovetail::bpe::test;

double seconds(const std::function<void()>& fn) {
  const auto start = std::chrono::steady_clock::now();
  fn();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double best_of(int n, const std::function<void()>& fn) {
  double best = seconds(fn);
  for (int i = 1; i < n; ++i) best = std::min(best, seconds(fn));
  return best;
}

void bench(const std::string& tokenizer_path, const std::string& text_path) {
  using namespace dovetail::bpe;
  const std::string json = test::read_file(tokenizer_path);
  const std::string text = test::read_file(text_path);
  const double mb = static_cast<double>(text.size()) / 1e6;

  dovetail::core::Node root;
  const double parse_s = seconds([&] { root = test::parse(json, tokenizer_path); });
  std::unique_ptr<Tokenizer> t;
  const double load_s = best_of(3, [&] { t = std::make_unique<Tokenizer>(test::view(root)); });
  std::printf("load            %8.1f ms after %.1f ms of JSON\n", load_s * 1e3, parse_s * 1e3);

  std::vector<Token> tokens;
  const auto encode = [&](std::string_view s) {
    tokens.clear();
    t->encode(s, {}, &tokens);
  };
  const double cold_s = seconds([&] { encode(text); });
  const double warm_s = best_of(7, [&] { encode(text); });
  std::printf("encode, cold    %8.1f MB/s\n", mb / cold_s);
  std::printf("encode, warm    %8.1f MB/s, %.2f bytes a token\n", mb / warm_s,
              static_cast<double>(text.size()) / static_cast<double>(tokens.size()));

  std::vector<uint32_t> ids;
  for (const Token& token : tokens) ids.push_back(token.id);
  const double decode_s = best_of(7, [&] { (void)t->decoder().decode(ids, false); });
  std::printf("decode          %8.1f MB/s\n", mb / decode_s);

  CutScratch scratch;
  PreTokenizer by_regex;
  by_regex.add_split_regex(kQwen2Pattern, SplitBehavior::kIsolated, false,
                           PreTokenizer::Engine::kRegex);
  const auto cut = [&](const PreTokenizer& p) {
    LayerStack layers;
    (void)p.cut({text}, &layers, &scratch);
  };
  std::printf("split           %8.1f MB/s\n", mb / best_of(7, [&] { cut(t->pre_tokenizer()); }));
  std::printf("split by PCRE2  %8.1f MB/s (the Qwen2 pattern)\n",
              mb / best_of(3, [&] { cut(by_regex); }));

  for (const char* unit : {"a", " ", "\n", "ab", "\xF0\x9F\x98\x80", "aGVsbG8gd29ybGQ"}) {
    std::string hard;
    while (hard.size() < (size_t{1} << 20)) hard += unit;
    const double s = best_of(2, [&] { encode(hard); });
    std::printf("1 MiB of %-16s %6.1f ns a byte\n", *unit == '\n' ? "\\n" : unit,
                s * 1e9 / static_cast<double>(hard.size()));
  }
}

std::string random_text(const std::vector<std::string>& units, size_t n_bytes) {
  std::mt19937 random(3);
  std::string text;
  while (text.size() < n_bytes) text += units[random() % units.size()];
  return text;
}

void bench_lengths(const std::string& tokenizer_path) {
  using namespace dovetail::bpe;
  const dovetail::core::Node root = test::parse(test::read_file(tokenizer_path), tokenizer_path);
  const Tokenizer t(test::view(root));
  const auto* model = dynamic_cast<const BpeModel*>(&t.model());
  std::vector<std::string> letters, ideographs, digits;
  for (char c = 'a'; c <= 'z'; ++c) letters.emplace_back(1, c);
  for (uint32_t c = 0x4E00; c < 0x9FA6; ++c) append_utf8(c, &ideographs.emplace_back());
  for (char c = '0'; c <= '9'; ++c) digits.emplace_back(1, c);
  const std::pair<const char*, std::vector<std::string>> kinds[] = {
      {"a", {"a"}}, {"random letters", letters}, {"ideographs", ideographs}, {"digits", digits}};
  std::printf("%-26s%8s%8s%8s%8s  ns a byte\n", "", "1 MiB", "2 MiB", "4 MiB", "8 MiB");
  for (const bool is_one_piece : {false, true}) {
    if (is_one_piece && model == nullptr) break;
    for (const auto& [name, units] : kinds) {
      std::printf("%-16s%-10s", name, is_one_piece ? "one piece" : "");
      for (const size_t mib : {1, 2, 4, 8}) {
        const std::string text = random_text(units, mib << 20);
        std::vector<Token> tokens;
        ModelScratch scratch;
        const double s = best_of(3, [&] {
          tokens.clear();
          if (is_one_piece)
            model->encode_uncached(text, 0, Merger::kAuto, &scratch, &tokens);
          else
            t.encode(text, {}, &tokens);
        });
        std::printf("%8.1f", s * 1e9 / static_cast<double>(text.size()));
        std::fflush(stdout);
      }
      std::printf("\n");
    }
  }
}

void serve(const std::string& tokenizer_path, const std::string& text_path,
           const std::string& ids_path) {
  const std::string text = test::read_file(text_path);
  const dovetail::core::Node root = test::parse(test::read_file(tokenizer_path), tokenizer_path);
  const Tokenizer warm(test::view(root));
  std::vector<Token> tokens;
  warm.encode(text, {}, &tokens);
  std::ofstream ids(ids_path, std::ios::binary);
  for (const Token& t : tokens) ids.write(reinterpret_cast<const char*>(&t.id), sizeof t.id);
  ids.close();

  for (std::string line; std::getline(std::cin, line);) {
    tokens.clear();
    std::unique_ptr<Tokenizer> fresh;
    if (line == "first") fresh = std::make_unique<Tokenizer>(test::view(root));
    const Tokenizer& t = fresh ? *fresh : warm;
    std::printf("%.9f\n", seconds([&] { t.encode(text, {}, &tokens); }));
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5 && std::string_view(argv[1]) == "--on-request") {
    serve(argv[2], argv[3], argv[4]);
  } else if (argc == 3 && std::string_view(argv[1]) == "--lengths") {
    bench_lengths(argv[2]);
  } else if (argc == 3) {
    bench(argv[1], argv[2]);
  } else {
    std::fprintf(stderr,
                 "usage: tokenizer_bench TOKENIZER.json TEXT\n"
                 "       tokenizer_bench --lengths TOKENIZER.json\n"
                 "       tokenizer_bench --on-request TOKENIZER.json TEXT IDS\n");
    return 2;
  }
}
