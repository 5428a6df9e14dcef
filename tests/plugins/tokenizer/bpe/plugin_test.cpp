// The plugin as the host sees it: through the C tables, with the core's own host services.
#include <dovetail/abi/plugin.h>
#include <dovetail/abi/tokenizer.h>
#include <gtest/gtest.h>

#include "core/plugin/call_frame.hpp"
#include "core/plugin/host.hpp"
#include "json_support.hpp"
#include "plugins/tokenizer/bpe/trainer.hpp"

extern "C" const dvt_plugin_v1* dvt_plugin_query(uint32_t host_major, uint32_t host_minor);

namespace dovetail::bpe::test {
namespace {

class BpePlugin : public ::testing::Test {
 protected:
  BpePlugin() : pool_(2), services_(pool_) {
    descriptor_ = dvt_plugin_query(DVT_ABI_MAJOR, DVT_ABI_MINOR);
    EXPECT_EQ(descriptor_->start(call_, services_.table_for("bpe"), &plugin_), DVT_OK);
    table_ = static_cast<const dvt_tokenizer_v1*>(
        descriptor_->get_interface(plugin_, core::abi_text("dovetail.tokenizer/1")));
  }
  ~BpePlugin() override {
    if (tokenizer_ != nullptr) table_->close(tokenizer_);
    descriptor_->stop(plugin_);
  }

  core::Status open(const Node& definition) {
    const dvt_tokenizer_open in{sizeof in, 0, core::doc_handle(definition), 0, 0};
    return call_.check(table_->open(plugin_, call_, &in, &tokenizer_));
  }

  std::vector<dvt_tok> encode(std::string_view text, std::vector<dvt_range> literal = {},
                              uint32_t flags = 0) {
    uint64_t need = 0;
    EXPECT_EQ(table_->encode(tokenizer_, call_, core::abi_text(text), literal.data(),
                             literal.size(), flags, nullptr, 0, &need),
              text.empty() ? DVT_OK : DVT_ETOOSMALL);
    std::vector<dvt_tok> out(need);
    EXPECT_EQ(table_->encode(tokenizer_, call_, core::abi_text(text), literal.data(),
                             literal.size(), flags, out.data(), out.size(), &need),
              DVT_OK);
    return out;
  }

  std::vector<uint32_t> ids(const std::vector<dvt_tok>& tokens) {
    std::vector<uint32_t> out;
    for (const dvt_tok& t : tokens) out.push_back(t.id);
    return out;
  }

  core::ThreadPool pool_;
  core::HostServices services_;
  core::CallFrame call_;
  const dvt_plugin_v1* descriptor_ = nullptr;
  void* plugin_ = nullptr;
  const dvt_tokenizer_v1* table_ = nullptr;
  void* tokenizer_ = nullptr;
};

const Node& qwen3_definition() {
  static const Node root =
      parse(read_file(std::string(DVT_BUILD_DIR) + "/test-data/qwen3-tokenizer/tokenizer.json"),
            "tokenizer.json");
  return root;
}

TEST_F(BpePlugin, EncodesWithSpansFlagsAndLiteralRanges) {
  ASSERT_TRUE(open(qwen3_definition()));
  const auto tokens = encode("hi<|im_end|>");
  ASSERT_EQ(ids(tokens), (std::vector<uint32_t>{6023, 151645}));
  EXPECT_EQ(tokens[1].begin, 2u);
  EXPECT_EQ(tokens[1].end, 12u);
  EXPECT_EQ(tokens[1].flags, uint32_t{DVT_PIECE_ADDED | DVT_PIECE_SPECIAL});
  const std::vector<uint32_t> plain{6023, 27, 91, 318, 6213, 91, 29};
  EXPECT_EQ(ids(encode("hi<|im_end|>", {{2, 12}})), plain);
  EXPECT_EQ(ids(encode("hi<|im_end|>", {}, DVT_ENC_SPECIAL_LITERAL)), plain);
  EXPECT_EQ(ids(encode("<think>", {}, DVT_ENC_SPECIAL_LITERAL)), (std::vector<uint32_t>{151667}));
  EXPECT_NE(ids(encode("<think>", {}, DVT_ENC_ADDED_LITERAL)), (std::vector<uint32_t>{151667}));
  EXPECT_TRUE(encode("").empty());

  uint64_t need = 0;
  const auto strict = table_->encode(tokenizer_, call_, core::abi_text("a\xFF"), nullptr, 0,
                                     DVT_ENC_STRICT_UTF8, nullptr, 0, &need);
  EXPECT_EQ(call_.check(strict).message(), "the text is not valid UTF-8 at byte 1");
}

TEST_F(BpePlugin, DecodesAtOnceAndStreaming) {
  ASSERT_TRUE(open(qwen3_definition()));
  const uint32_t list[] = {9707, 26525, 232, 151645};
  char text[256];
  uint64_t need = 0;
  ASSERT_EQ(
      table_->decode(tokenizer_, call_, list, 4, DVT_DEC_SKIP_SPECIAL, text, sizeof text, &need),
      DVT_OK);
  EXPECT_EQ(std::string(text, need), "Hello 😊");

  dvt_tokenizer_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(table_->info(tokenizer_, call_, &info), DVT_OK);
  EXPECT_EQ(info.n_ids, 151669u);
  EXPECT_EQ(info.n_added, 26u);
  std::string buffer(info.max_step_bytes, '\0'), streamed;
  void* stream = nullptr;
  ASSERT_EQ(table_->stream_open(tokenizer_, call_, 0, &stream), DVT_OK);
  EXPECT_EQ(table_->stream_step(stream, call_, 9707, buffer.data(), 1, &need), DVT_ETOOSMALL);
  for (const uint32_t id : list) {
    ASSERT_EQ(table_->stream_step(stream, call_, id, buffer.data(), buffer.size(), &need), DVT_OK);
    streamed.append(buffer, 0, need);
  }
  ASSERT_EQ(table_->stream_flush(stream, call_, buffer.data(), buffer.size(), &need), DVT_OK);
  table_->stream_close(stream);
  EXPECT_EQ(streamed + std::string(buffer, 0, need), "Hello 😊<|im_end|>");
}

TEST_F(BpePlugin, NoStepGivesMoreThanItSays) {
  ASSERT_TRUE(open(qwen3_definition()));
  dvt_tokenizer_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(table_->info(tokenizer_, call_, &info), DVT_OK);
  std::string buffer(info.max_step_bytes, '\0');
  void* stream = nullptr;
  ASSERT_EQ(table_->stream_open(tokenizer_, call_, 0, &stream), DVT_OK);
  uint64_t need = 0;
  for (uint32_t id = 0; id < info.n_ids; ++id) {
    ASSERT_EQ(table_->stream_step(stream, call_, id, buffer.data(), buffer.size(), &need), DVT_OK)
        << id;
  }
  table_->stream_close(stream);
}

TEST_F(BpePlugin, NamesPiecesAndFindsIds) {
  ASSERT_TRUE(open(qwen3_definition()));
  char text[64];
  uint64_t need = 0;
  uint32_t flags = 9, id = 0;
  ASSERT_EQ(table_->piece(tokenizer_, call_, 26525, &flags, text, sizeof text, &need), DVT_OK);
  EXPECT_EQ(std::string(text, need), " \xF0\x9F\x98");
  EXPECT_EQ(flags, 0u);
  const auto code = table_->piece(tokenizer_, call_, 151936, &flags, text, sizeof text, &need);
  EXPECT_EQ(call_.check(code).message(), "no token has id 151936, ids go up to 151668");
  ASSERT_EQ(table_->find(tokenizer_, call_, core::abi_text("<|im_end|>"), &id), DVT_OK);
  EXPECT_EQ(id, 151645u);
  EXPECT_EQ(table_->find(tokenizer_, call_, core::abi_text("no such token"), &id), DVT_EINVAL);
  uint8_t digest[32];
  ASSERT_EQ(table_->identity(tokenizer_, call_, digest), DVT_OK);
  const auto expected = qwen3().identity();
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), digest));
}

TEST_F(BpePlugin, SaysWhichFileAndPlaceItRefuses) {
  const Node root =
      parse(R"({"version": "1.0", "normalizer": {"type": "Magic"}})", "dir/tokenizer.json");
  const core::Status status = open(root);
  EXPECT_EQ(status.code(), core::Code::kUnsupported);
  EXPECT_TRUE(status.message().starts_with(
      "dir/tokenizer.json: normalizer.type is \"Magic\", which is not supported (supported: NFC, "))
      << status.message();
}

// ---- the trainer

struct Sink {
  std::string text;
  static dvt_code write(void* self, dvt_call*, dvt_bytes part) noexcept {
    static_cast<Sink*>(self)->text.append(static_cast<const char*>(part.p), part.n);
    return DVT_OK;
  }
};

TEST_F(BpePlugin, TrainsFromFilesToTheSameBytesEveryTime) {
  const auto* trainer = static_cast<const dvt_tokenizer_trainer_v1*>(
      descriptor_->get_interface(plugin_, core::abi_text("dovetail.tokenizer_trainer/1")));
  ASSERT_NE(trainer, nullptr);
  auto folder = core::Folder::open("tests/data/tokenizer/bpe-train");
  ASSERT_TRUE(folder);
  core::HostScope scope(std::move(folder).value());
  const dvt_file files[] = {scope.open_file("corpus-apache2.txt").value(),
                            scope.open_file("corpus-mixed.txt").value()};
  const dvt_str special = core::abi_text("<|endoftext|>");
  dvt_train_options options{};
  options.struct_size = sizeof options;
  options.vocab_size = 500;
  options.min_frequency = 2;
  options.special_tokens = &special;
  options.n_special_tokens = 1;

  uint64_t n_progress = 0;
  core::CallFrame call(nullptr, [&](uint64_t, uint64_t, std::string_view) { ++n_progress; });
  Sink first, second;
  const dvt_sink to_first{sizeof to_first, 0, &first, Sink::write};
  ASSERT_TRUE(call.check(trainer->train(plugin_, call, &options, files, 2, &to_first)));
  const dvt_sink to_second{sizeof to_second, 0, &second, Sink::write};
  ASSERT_TRUE(call.check(trainer->train(plugin_, call, &options, files, 2, &to_second)));
  EXPECT_EQ(first.text, second.text);
  EXPECT_GT(n_progress, 4u);

  TrainOptions same;
  same.vocab_size = 500;
  same.min_frequency = 2;
  same.special_tokens = {"<|endoftext|>"};
  Trainer by_hand(same);
  by_hand.feed_lines(read_file("tests/data/tokenizer/bpe-train/corpus-apache2.txt"));
  by_hand.feed_lines(read_file("tests/data/tokenizer/bpe-train/corpus-mixed.txt"));
  EXPECT_EQ(first.text, to_tokenizer_json(by_hand.train(nullptr).value(), same));

  options.vocab_size = 200;
  EXPECT_EQ(call.check(trainer->train(plugin_, call, &options, files, 2, &to_first)).message(),
            "vocab_size is 200, expected 257 (256 bytes and the special tokens) to 10000000");
  const uint32_t cancel = 1;
  core::CallFrame cancelled(&cancel);
  options.vocab_size = 500;
  EXPECT_EQ(trainer->train(plugin_, cancelled, &options, files, 2, &to_first), DVT_ECANCELLED);
}

}  // namespace
}  // namespace dovetail::bpe::test
