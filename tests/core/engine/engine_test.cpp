// The engine over the hash, scripted and demo models: any fault of cache, batching, chunking or
// preemption changes what the hash model says next.
#include "core/engine/engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "core/cli/session.hpp"
#include "core/text/prompt.hpp"

namespace dovetail::core {
namespace {

const std::string kProgram = DVT_BUILD_DIR "/bin/dovetail";

std::unique_ptr<Session> open(const std::string& config, std::vector<std::string> sets = {}) {
  ModelOptions options;
  options.config = config;
  options.sets = std::move(sets);
  options.sets.push_back("plugins.path=[" DVT_BUILD_DIR "/tests/plugins]");
  auto session = Session::open(kProgram, options);
  EXPECT_TRUE(session.is_ok()) << session.status().message();
  return session ? std::move(*session) : nullptr;
}

RequestParams greedy(std::vector<TokenId> prompt, uint32_t n) {
  RequestParams p;
  p.prompt = std::move(prompt);
  p.max_tokens = n;
  return p;
}

std::vector<Completion> run(Engine& engine) {
  for (bool more = true; more;) {
    Result<bool> stepped = engine.step();
    EXPECT_TRUE(stepped.is_ok()) << stepped.status().message();
    if (!stepped) break;
    more = *stepped;
  }
  std::vector<Completion> done = engine.take_completions();
  std::sort(done.begin(), done.end(),
            [](const Completion& a, const Completion& b) { return a.id < b.id; });
  return done;
}

std::vector<TokenId> alone(Session& session, const RequestParams& params) {
  const std::unique_ptr<Engine> engine = session.make_engine();
  EXPECT_TRUE(engine->add(params).is_ok());
  const std::vector<Completion> done = run(*engine);
  return done.empty() ? std::vector<TokenId>() : done[0].tokens;
}

std::vector<TokenId> random_ids(size_t n, uint32_t seed, uint32_t vocab) {
  std::mt19937 random(seed);
  std::vector<TokenId> ids(n);
  for (TokenId& id : ids) id = random() % vocab;
  return ids;
}

constexpr const char* kHash = "tests/data/engine/hash.yaml";
constexpr const char* kScripted = "tests/data/engine/scripted.yaml";
constexpr const char* kDemo = "configs/demo.yaml";
const std::vector<std::string> kGreedySets = {"sampler=[greedy]"};

TEST(Weights, MoveToHugePagesWhileTheModelRuns) {
  const auto kept = open(kDemo, {"backend.huge_pages=false"});
  const auto moved = open(kDemo);
  ASSERT_TRUE(kept && moved);
  RequestParams params = greedy(random_ids(40, 7, 4000), 60);
  params.seed = 5;  // the demo's config draws
  EXPECT_EQ(alone(*kept, params), alone(*moved, params))
      << "read from the file, and while it moves";
  moved->model().settle();
  EXPECT_EQ(kept->model().promoted_bytes(), 0u);
  if (has_huge_pages()) {
    EXPECT_GE(moved->model().promoted_bytes(), moved->model().weights().bytes_per_token() * 9 / 10);
  }
  EXPECT_EQ(alone(*kept, params), alone(*moved, params));
}

TEST(Engine, HashModelSaysTheSameAloneInABatchAndInChunks) {  // B077
  for (const char* backend : {"reference", "cpu"}) {
    const std::string plugin = std::string("backend.plugin=") + backend;
    auto plain = open(kHash, {plugin});
    ASSERT_TRUE(plain);
    std::vector<RequestParams> requests;
    for (uint32_t i = 0; i < 8; ++i) requests.push_back(greedy(random_ids(1 + i * 13, i, 64), 24));
    std::vector<std::vector<TokenId>> expected;
    for (const RequestParams& r : requests) expected.push_back(alone(*plain, r));
    for (const char* chunk : {"1", "7", "64"}) {
      auto session = open(kHash, {plugin, std::string("scheduler.prefill_chunk=") + chunk});
      ASSERT_TRUE(session);
      const std::unique_ptr<Engine> engine = session->make_engine();
      for (const RequestParams& r : requests) ASSERT_TRUE(engine->add(r).is_ok());
      const std::vector<Completion> done = run(*engine);
      ASSERT_EQ(done.size(), requests.size());
      for (size_t i = 0; i < done.size(); ++i)
        EXPECT_EQ(done[i].tokens, expected[i]) << backend << " chunk " << chunk << " request " << i;
      EXPECT_EQ(engine->cache().n_free_blocks(), engine->cache().n_blocks());
    }
  }
}

// One prompt beside others, in each place that it can have among them.
TEST(Engine, APromptGetsTheSameAnswerAsEachOfEight) {  // B077
  const std::vector<std::vector<std::string>> models = {{kHash, "backend.plugin=reference"},
                                                        {kHash, "backend.plugin=cpu"},
                                                        {kDemo, "backend.plugin=cpu"}};
  for (const std::vector<std::string>& model : models) {
    std::vector<std::string> sets = {model[1], "sampler=[greedy]", ""};
    auto plain = open(model[0], {model[1], "sampler=[greedy]"});
    ASSERT_TRUE(plain);
    const RequestParams mine = greedy(random_ids(37, 77, 64), 16);
    const std::vector<TokenId> expected = alone(*plain, mine);
    ASSERT_EQ(expected.size(), 16u);
    for (const char* chunk : {"1", "7", "64"}) {
      sets.back() = std::string("scheduler.prefill_chunk=") + chunk;
      auto session = open(model[0], sets);
      ASSERT_TRUE(session);
      for (size_t place = 0; place < 8; ++place) {
        const std::unique_ptr<Engine> engine = session->make_engine();
        for (uint32_t i = 0; i < 8; ++i)
          ASSERT_TRUE(engine->add(i == place ? mine : greedy(random_ids(1 + 9 * i, i, 64), 8 + i)));
        const std::vector<Completion> done = run(*engine);
        ASSERT_EQ(done.size(), 8u);
        EXPECT_EQ(done[place].tokens, expected)
            << model[0] << " " << model[1] << " chunk " << chunk << " place " << place;
      }
    }
  }
}

TEST(Engine, PreemptionChangesWhenNotWhat) {  // B077
  auto plain = open(kHash);
  ASSERT_TRUE(plain);
  std::vector<RequestParams> requests;
  for (uint32_t i = 0; i < 6; ++i) requests.push_back(greedy(random_ids(30, i, 64), 60));
  std::vector<std::vector<TokenId>> expected;
  for (const RequestParams& r : requests) expected.push_back(alone(*plain, r));
  auto tight = open(
      kHash, {"kv_cache.max_tokens=208", "kv_cache.block_len=16"});  // about two of them at once
  ASSERT_TRUE(tight);
  const std::unique_ptr<Engine> engine = tight->make_engine();
  for (const RequestParams& r : requests) ASSERT_TRUE(engine->add(r).is_ok());
  const std::vector<Completion> done = run(*engine);
  ASSERT_EQ(done.size(), requests.size());
  uint32_t n_preempted = 0;
  for (size_t i = 0; i < done.size(); ++i) {
    EXPECT_EQ(done[i].tokens, expected[i]) << i;
    n_preempted += done[i].n_preempted;
  }
  EXPECT_GT(n_preempted, 0u);
  EXPECT_EQ(engine->cache().n_free_blocks(), engine->cache().n_blocks());
}

TEST(Engine, ACancelStormLeavesNothingBehind) {  // B061
  auto session = open(kHash);
  ASSERT_TRUE(session);
  const RequestParams fixed = greedy(random_ids(40, 99, 64), 30);
  const std::vector<TokenId> before = alone(*session, fixed);
  const std::unique_ptr<Engine> engine = session->make_engine();
  std::mt19937 random(7);
  size_t n_added = 0;
  std::vector<RequestId> open_ids;
  while (n_added < 200 || !engine->idle()) {
    while (n_added < 200 && open_ids.size() < 8) {
      open_ids.push_back(*engine->add(greedy(random_ids(1 + random() % 50, random(), 64), 20)));
      ++n_added;
    }
    if (!open_ids.empty() && random() % 2 == 0) {
      const size_t i = random() % open_ids.size();
      engine->cancel(open_ids[i]);
      open_ids.erase(open_ids.begin() + static_cast<std::ptrdiff_t>(i));
    }
    ASSERT_TRUE(engine->step().is_ok());
    for (const Completion& c : engine->take_completions()) std::erase(open_ids, c.id);
  }
  ASSERT_TRUE(engine->add(fixed).is_ok());
  const std::vector<Completion> done = run(*engine);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].tokens, before);
  EXPECT_EQ(engine->cache().n_free_blocks(), engine->cache().n_blocks());
}

// A step that is launched before the one before it is read names its tokens by row.
TEST(Engine, LaunchingAheadChangesNoToken) {
  const std::vector<std::string> sets = {"sampler=[{temperature: 0}]",
                                         "scheduler.prefill_chunk=16"};
  auto plain = open(kHash, sets);
  ASSERT_TRUE(plain);
  std::vector<RequestParams> requests;
  for (uint32_t i = 0; i < 8; ++i)
    requests.push_back(greedy(random_ids(10 + i * 7, i, 64), 20 + i * 5));
  requests[2].max_tokens = 1;
  requests[3].max_tokens = 0;
  requests[4].stop_ids = {alone(*plain, requests[4])[9]};
  requests[5].seed = 3;  // draws: its steps are read before the next one starts
  requests[5].sampling = Node::make_map();
  requests[5].sampling.set("temperature", Node::make_float(1.5));
  std::vector<std::vector<TokenId>> expected;
  for (const RequestParams& r : requests) expected.push_back(alone(*plain, r));
  EXPECT_LE(expected[4].size(), 9u);

  for (const bool is_tight : {false, true}) {
    std::vector<std::string> more = sets;
    if (is_tight) more.insert(more.end(), {"kv_cache.max_tokens=160", "kv_cache.block_len=16"});
    auto session = open(kHash, more);
    ASSERT_TRUE(session);
    const std::unique_ptr<Engine> engine = session->make_engine();
    engine->set_launch_ahead(true);
    std::vector<std::vector<TokenId>> streamed(requests.size());
    for (size_t i = 0; i < requests.size(); ++i)
      ASSERT_TRUE(engine
                      ->add(requests[i],
                            [&streamed, i](const RequestEvent& e) {
                              if (e.token) streamed[i].push_back(*e.token);
                            })
                      .is_ok());
    const RequestId dropped = *engine->add(greedy(random_ids(9, 77, 64), 500));
    for (int i = 0; i < 25; ++i) ASSERT_TRUE(engine->step().is_ok());
    engine->cancel(dropped);
    std::vector<Completion> done = run(*engine);
    ASSERT_EQ(done.size(), requests.size() + 1);
    uint32_t n_preempted = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(done[i].tokens, expected[i]) << "request " << i << (is_tight ? ", few blocks" : "");
      EXPECT_EQ(streamed[i], expected[i]) << i;
      n_preempted += done[i].n_preempted;
    }
    EXPECT_EQ(done[4].finish, FinishReason::kStop);
    EXPECT_EQ(done.back().finish, FinishReason::kCancelled);
    EXPECT_EQ(is_tight, n_preempted > 0);
    EXPECT_EQ(engine->cache().n_free_blocks(), engine->cache().n_blocks());
  }

  const std::unique_ptr<Engine> left = plain->make_engine();  // goes away with a step in flight
  left->set_launch_ahead(true);
  ASSERT_TRUE(left->add(requests[0]).is_ok());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(left->step().is_ok());
}

TEST(Engine, ACacheOfInt8LeavesStatesOfTheirOwnTypeAlone) {
  const auto plain = open(kHash), with_int8 = open(kHash, {"kv_cache.dtype=int8"});
  ASSERT_TRUE(plain && with_int8);
  const RequestParams params = greedy(random_ids(70, 3, 64), 40);
  EXPECT_EQ(alone(*with_int8, params), alone(*plain, params));
  EXPECT_EQ(with_int8->model().memory().bytes_per_token, plain->model().memory().bytes_per_token);
}

class EngineOverCache : public testing::TestWithParam<const char*> {};  // kv_cache.dtype
INSTANTIATE_TEST_SUITE_P(Engine, EngineOverCache, testing::Values("float32", "bf16", "int8"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(EngineOverCache, DemoModelGivesTheSameBytesWhateverIsBesideIt) {  // B077
  for (const char* backend : {"cpu", "reference"}) {
    std::vector<std::string> sets = {"sampler=[greedy]", std::string("backend.plugin=") + backend,
                                     "kv_cache.max_tokens=512",
                                     std::string("kv_cache.dtype=") + GetParam()};
    auto session = open(kDemo, sets);
    ASSERT_TRUE(session);
    const auto vocab = static_cast<uint32_t>(session->model().vocab_size());
    const uint32_t n = std::string_view(backend) == "cpu" ? 24 : 4;
    std::vector<RequestParams> requests;
    for (uint32_t i = 0; i < 4; ++i)
      requests.push_back(greedy(random_ids(3 + i * 11, i + 1, vocab), n));
    std::vector<std::vector<TokenId>> expected;
    for (const RequestParams& r : requests) expected.push_back(alone(*session, r));
    sets.push_back("scheduler.prefill_chunk=5");
    auto chunked = open(kDemo, sets);
    ASSERT_TRUE(chunked);
    const std::unique_ptr<Engine> engine = chunked->make_engine();
    for (const RequestParams& r : requests) ASSERT_TRUE(engine->add(r).is_ok());
    const std::vector<Completion> done = run(*engine);
    ASSERT_EQ(done.size(), requests.size());
    for (size_t i = 0; i < done.size(); ++i)
      EXPECT_EQ(done[i].tokens, expected[i]) << backend << " request " << i;
  }
}

TEST_P(EngineOverCache, BackendsAgreeOnGreedyTokensOfTheDemoModel) {
  std::vector<std::vector<TokenId>> answers;
  for (const char* backend : {"cpu", "reference"}) {
    auto session = open(kDemo, {"sampler=[greedy]", std::string("backend.plugin=") + backend,
                                std::string("kv_cache.dtype=") + GetParam()});
    ASSERT_TRUE(session);
    RequestParams params = greedy(
        *encode_text(*session->model().tokenizer(), "It is a truth universally acknowledged"), 24);
    answers.push_back(alone(*session, params));
  }
  EXPECT_EQ(answers[0].size(), 24u);
  EXPECT_EQ(answers[0], answers[1]);
}

TEST(Engine, ASeedIsTheRequestsOwn) {  // B076
  auto session = open(kHash, {"sampler=[{temperature: 0.8}]"});
  ASSERT_TRUE(session);
  RequestParams mine = greedy({1, 2, 3}, 20);
  mine.seed = 42;
  const std::vector<TokenId> expected = alone(*session, mine);
  RequestParams unseeded = greedy({9, 9}, 20), other = greedy({1, 2, 3}, 20), choice = mine;
  other.seed = 7;
  choice.choice = 1;
  const std::unique_ptr<Engine> engine = session->make_engine();
  for (const RequestParams& r : {unseeded, mine, other, choice})
    ASSERT_TRUE(engine->add(r).is_ok());
  const std::vector<Completion> done = run(*engine);
  ASSERT_EQ(done.size(), 4u);
  EXPECT_EQ(done[1].tokens, expected);
  EXPECT_NE(done[2].tokens, expected);
  EXPECT_NE(done[3].tokens, expected);
  EXPECT_EQ(done[1].seed, 42u);
  mine.seed = 0;  // a real seed
  EXPECT_EQ(alone(*session, mine), alone(*session, mine));
}

TEST(Engine, LimitsStopsAndReasons) {
  auto session = open(kScripted, {"model.script=[5, 6, 7, 8]"});
  ASSERT_TRUE(session);
  const std::unique_ptr<Engine> engine = session->make_engine();
  RequestParams none = greedy({1}, 0), three = greedy({1}, 3), stop = greedy({1}, 10);
  stop.stop_ids = {7};
  for (const RequestParams& r : {none, three, stop}) ASSERT_TRUE(engine->add(r).is_ok());
  const std::vector<Completion> done = run(*engine);
  ASSERT_EQ(done.size(), 3u);
  EXPECT_TRUE(done[0].tokens.empty());
  EXPECT_EQ(done[0].finish, FinishReason::kLength);
  EXPECT_EQ(done[1].tokens, (std::vector<TokenId>{5, 6, 7}));
  EXPECT_EQ(done[1].finish, FinishReason::kLength);
  EXPECT_EQ(done[2].tokens, (std::vector<TokenId>{5, 6}));
  EXPECT_EQ(done[2].finish, FinishReason::kStop);
}

TEST(Engine, AStopStringMayStartInsideAToken) {  // B049
  auto session = open(kScripted, {"model.script=[71286, 34070, 43]", "model.vocab_size=151936",
                                  "tokenizer.path=" DVT_BUILD_DIR "/test-data/qwen3-tokenizer"});
  ASSERT_TRUE(session);
  RequestParams params = greedy({1}, 3);
  params.stop = {"DEFGHIJ"};
  std::string streamed;
  const auto sink = [&streamed](const RequestEvent& e) { streamed += e.text; };
  const std::unique_ptr<Engine> engine = session->make_engine();
  ASSERT_TRUE(engine->add(params, sink).is_ok());
  std::vector<Completion> done = run(*engine);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].text, "ABC");
  EXPECT_EQ(streamed, "ABC");
  EXPECT_EQ(done[0].tokens.size(), 2u);
  EXPECT_EQ(done[0].finish, FinishReason::kStop);
  params.include_stop = true;
  ASSERT_TRUE(engine->add(params).is_ok());
  done = run(*engine);
  EXPECT_EQ(done[0].text, "ABCDEFGHIJ");
}

TEST(Engine, ARowOfNaNFailsItsRequestAndNoOther) {
  auto session = open(kScripted, {"model.script=[5]", "model.nan_step=2", "sampler=[greedy]"});
  ASSERT_TRUE(session);
  for (const bool ahead : {false, true}) {
    const std::unique_ptr<Engine> engine = session->make_engine();
    engine->set_launch_ahead(ahead);
    ASSERT_TRUE(engine->add(greedy({1}, 5)).is_ok());
    ASSERT_TRUE(engine->add(greedy({1}, 2)).is_ok());
    const std::vector<Completion> done = run(*engine);
    ASSERT_EQ(done.size(), 2u);
    EXPECT_EQ(done[0].finish, FinishReason::kError);
    EXPECT_NE(done[0].error.message().find("NaN"), std::string::npos);
    EXPECT_EQ(done[0].tokens.size(), 2u);
    EXPECT_EQ(done[1].finish, FinishReason::kLength);
  }
}

TEST(Engine, RefusesAPromptThatLeavesNoRoom) {  // B062
  auto session = open(kScripted, {"model.script=[5]", "context=16"});
  ASSERT_TRUE(session);
  const std::unique_ptr<Engine> engine = session->make_engine();
  for (size_t n : {size_t{16}, size_t{17}}) {
    const auto refused = engine->add(greedy(std::vector<TokenId>(n, 1), 8));
    ASSERT_FALSE(refused.is_ok());
    EXPECT_NE(refused.status().message().find(std::to_string(n) + " tokens"), std::string::npos);
    EXPECT_NE(refused.status().message().find("16"), std::string::npos);
  }
  ASSERT_TRUE(engine->add(greedy(std::vector<TokenId>(15, 1), 8)).is_ok());
  const std::vector<Completion> done = run(*engine);
  EXPECT_EQ(done[0].tokens.size(), 1u);
  EXPECT_EQ(done[0].finish, FinishReason::kLength);
  EXPECT_FALSE(engine->add(greedy({}, 1)).is_ok());
  EXPECT_FALSE(engine->add(greedy({100000}, 1)).is_ok());
}

// Steps until a request has so many tokens; counts those that come.
struct Counted {
  size_t n = 0;
  RequestSink sink() {
    return [this](const RequestEvent& e) { n += e.token ? 1 : 0; };
  }
};
void step_until(Engine& engine, const Counted& counted, size_t n) {
  while (counted.n < n) {
    const Result<bool> stepped = engine.step();
    ASSERT_TRUE(stepped.is_ok() && *stepped) << stepped.status().message();
  }
}
void swap_to(Session& session, Engine& engine, const std::string& backend) {
  ASSERT_TRUE(engine.settle());
  const Result<BackendMove> moved = session.move_to(backend, "a test", engine);
  ASSERT_TRUE(moved) << moved.status().message();
  EXPECT_EQ(session.model().backend_name(), backend);
}

// Two that answer, a third in its prompt, a fourth that has no place yet.
TEST(Swap, ABatchGoesOverAndBackAndSaysTheSame) {
  const std::vector<std::string> greedily = {"sampler=[greedy]", "kv_cache.dtype=float32",
                                             "scheduler.max_seqs=3", "scheduler.prefill_chunk=5"};
  for (const char* config : {kHash, kDemo})
    for (const bool ahead : {false, true}) {
      auto stays = open(config, greedily), moves = open(config, greedily);
      ASSERT_TRUE(stays && moves);
      std::vector<RequestParams> requests;
      for (uint32_t i = 0; i < 4; ++i)
        requests.push_back(greedy(random_ids(i == 2 ? 60 : 9 + 4 * i, i, 64), 24 + i));
      const std::unique_ptr<Engine> engine = moves->make_engine();
      engine->set_launch_ahead(ahead);
      Counted first;
      ASSERT_TRUE(engine->add(requests[0], first.sink()).is_ok());
      for (size_t i = 1; i < 4; ++i) ASSERT_TRUE(engine->add(requests[i]).is_ok());
      step_until(*engine, first, 4);
      for (const char* backend : {"reference", "cpu"}) {
        const size_t n_cached = engine->n_prefilled();
        swap_to(*moves, *engine, backend);
        EXPECT_GE(engine->n_prefilled(), n_cached) << "no token is computed again";
        step_until(*engine, first, first.n + 8);
      }
      const std::vector<Completion> done = run(*engine);
      ASSERT_EQ(done.size(), 4u);
      for (size_t i = 0; i < done.size(); ++i) {
        EXPECT_EQ(done[i].tokens, alone(*stays, requests[i])) << config << " request " << i;
        EXPECT_EQ(done[i].n_preempted, 0u);
      }
      EXPECT_EQ(engine->cache().n_free_blocks(), engine->cache().n_blocks());
    }
}

TEST(Swap, OneStepLaterEachSequenceHasOneTokenMore) {
  auto session = open(kDemo, {"sampler=[greedy]"});
  ASSERT_TRUE(session);
  const std::unique_ptr<Engine> engine = session->make_engine();
  Counted first;
  ASSERT_TRUE(engine->add(greedy(random_ids(40, 1, 64), 20), first.sink()).is_ok());
  ASSERT_TRUE(engine->add(greedy(random_ids(30, 2, 64), 20)).is_ok());
  step_until(*engine, first, 3);
  const size_t n_cached = engine->n_prefilled();
  ASSERT_TRUE(engine->settle());
  const Result<BackendMove> moved = session->move_to("reference", "a test", *engine);
  ASSERT_TRUE(moved) << moved.status().message();
  EXPECT_EQ(moved->states.n_sequences, 2u);
  EXPECT_EQ(moved->states.n_tokens, n_cached);
  ASSERT_TRUE(engine->step().is_ok());
  EXPECT_EQ(engine->n_prefilled(), n_cached + 2);
}

// Draws with a penalty depend on the seed, the position and the tokens before: all stay with the request.
TEST(Swap, SeedAndPenaltiesGoOn) {
  const std::vector<std::string> drawn = {"sampler=[{repetition_penalty: 1.5}, {temperature: 0.8}]",
                                          "generate.seed=9"};
  auto stays = open(kHash, drawn), moves = open(kHash, drawn);
  ASSERT_TRUE(stays && moves);
  RequestParams params = greedy(random_ids(20, 3, 64), 40);
  params.seed = 9;
  const std::unique_ptr<Engine> engine = moves->make_engine();
  Counted counted;
  ASSERT_TRUE(engine->add(params, counted.sink()).is_ok());
  step_until(*engine, counted, 10);
  swap_to(*moves, *engine, "reference");
  const std::vector<Completion> done = run(*engine);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].tokens.size(), 40u);
  EXPECT_EQ(done[0].tokens, alone(*stays, params));
}

// Unless the config says otherwise, a cache is what it would have been on that backend from the start.
TEST(Swap, TheCacheTakesTheNumberTypeOfTheBackend) {
  for (const auto& [dtype, there, here] :
       {std::tuple{"auto", DVT_F32, DVT_BF16}, std::tuple{"int8", DVT_I8_SCALED, DVT_I8_SCALED}}) {
    auto session = open(kDemo, {"sampler=[greedy]", "kv_cache.dtype=" + std::string(dtype)});
    ASSERT_TRUE(session);
    const std::unique_ptr<Engine> engine = session->make_engine();
    Counted counted;
    ASSERT_TRUE(engine->add(greedy(random_ids(20, 3, 64), 12), counted.sink()).is_ok());
    step_until(*engine, counted, 4);
    EXPECT_EQ(session->model().kv_dtype(), uint32_t{here});
    const uint32_t block_len = session->model().block_len();
    swap_to(*session, *engine, "reference");
    EXPECT_EQ(session->model().kv_dtype(), uint32_t{there});
    EXPECT_EQ(session->model().block_len(), block_len) << "page tables stay";
    swap_to(*session, *engine, "cpu");
    EXPECT_EQ(session->model().kv_dtype(), uint32_t{here});
    const std::vector<Completion> done = run(*engine);
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].tokens.size(), 12u);
  }
}

TEST(Swap, WhatCannotRunThereStaysAndGoesOn) {
  auto stays = open(kHash, kGreedySets), moves = open(kHash, kGreedySets);
  ASSERT_TRUE(stays && moves);
  const RequestParams params = greedy(random_ids(20, 3, 64), 30);
  const std::unique_ptr<Engine> engine = moves->make_engine();
  Counted counted;
  ASSERT_TRUE(engine->add(params, counted.sink()).is_ok());
  step_until(*engine, counted, 10);
  const Result<BackendMove> nowhere = moves->move_to("nope", "a test", *engine);
  EXPECT_EQ(nowhere.status().code(), Code::kInvalid);
  EXPECT_EQ(nowhere.status().message().find("a test: no backend plugin \"nope\" is installed"), 0u)
      << nowhere.status().message();
  const Result<BackendMove> cuda = moves->move_to("cuda_emulated", "a test", *engine);
  EXPECT_EQ(cuda.status().code(), Code::kUnsupported) << "the hash model brings an op of its own";
  EXPECT_EQ(moves->model().backend_name(), "cpu");
  const std::vector<Completion> done = run(*engine);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].tokens, alone(*stays, params));
}

// int8 matrices of a file: cpu reads them where they lie, in pages of their own by now; reference expands them and lets
// go of where they came from.
TEST(Swap, WeightsThatMovedToHugePagesAreStillThere) {
  const std::string folder = testing::TempDir() + "dovetail-swap-int8";
  std::filesystem::remove_all(folder);
  const std::string quantize =
      kProgram + " quantize " + kDemo + " -o " + folder + " --weights int8 >/dev/null 2>&1";
  ASSERT_EQ(std::system(quantize.c_str()), 0);  // NOLINT(concurrency-mt-unsafe): one thread
  auto session = open(folder, {"sampler=[greedy]", "kv_cache.dtype=float32"});
  ASSERT_TRUE(session);
  ASSERT_GT(session->model().memory().mapped_bytes(), 0u);
  const RequestParams params = greedy(random_ids(20, 3, 64), 20);
  const std::vector<TokenId> expected = alone(*session, params);
  session->model().settle();
  const std::unique_ptr<Engine> engine = session->make_engine();
  swap_to(*session, *engine, "reference");
  ASSERT_EQ(session->model().memory().mapped_bytes(), 0u) << "nothing is let go of";
  EXPECT_EQ(alone(*session, params), expected);
  swap_to(*session, *engine, "cpu");
  EXPECT_EQ(alone(*session, params), expected);
  std::filesystem::remove_all(folder);
}

// A parameter of one plugin is not one of another, and is there again on the way back.
TEST(Swap, KeysOfTheOtherPluginAreLeftOut) {
  auto session = open(kDemo, {"sampler=[greedy]", "backend.isa=portable"});
  ASSERT_TRUE(session);
  const std::unique_ptr<Engine> engine = session->make_engine();
  EXPECT_EQ(session->backend_text(), "cpu (portable)");
  swap_to(*session, *engine, "reference");
  EXPECT_EQ(session->backend_text(), "reference");
  swap_to(*session, *engine, "cpu");
  EXPECT_EQ(session->backend_text(), "cpu (portable)");
}

}  // namespace
}  // namespace dovetail::core
