// What models say, taken apart: whole, in every two pieces, byte by byte, always the same.
#include "core/text/reply/reply_parser.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "core/base/json.hpp"

namespace dovetail::core {
namespace {

ReplyFormat format(const char* reasoning, const char* tools) {
  const Result<ReplyFormat> chosen = ReplyFormat::choose(reasoning, tools, "");
  EXPECT_TRUE(chosen.is_ok()) << chosen.status().message();
  return chosen ? *chosen : ReplyFormat();
}

const Node& tools() {
  static const Node list = *parse_json(
      R"([{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object",
           "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}},
          {"type": "function", "function": {"name": "add"}}])",
      "tools");
  return list;
}

std::string shown(const Reply& reply) {
  std::string text = "{" + reply.reasoning + "}" + reply.content;
  for (const ToolCall& call : reply.calls) text += "[" + call.name + call.arguments + "]";
  return text;
}

// "{reasoning}content[name{arguments}]..." of the text at once; that every other way to feed it gives
// the same is checked on the way.
std::string parsed(const ReplyFormat& f, const std::string& text, bool in_reasoning = false) {
  const ReplyStart start{in_reasoning, &tools(), 7};
  const std::string whole = shown(parse_reply(f, start, text));
  const auto in_pieces = [&](const std::vector<size_t>& cuts) {
    ReplyParser parser(f, start);
    Reply reply;
    size_t begin = 0;
    std::vector<size_t> ends = cuts;
    ends.push_back(text.size());
    for (const size_t end : ends) {
      for (const ReplyEvent& e : parser.feed(text.substr(begin, end - begin))) {
        EXPECT_EQ(e.text.empty(), e.kind == ReplyEvent::Kind::kCall);
        reply.add(e);
      }
      begin = end;
    }
    for (const ReplyEvent& e : parser.flush()) reply.add(e);
    return shown(reply);
  };
  std::vector<size_t> every;
  for (size_t i = 1; i < text.size(); ++i) {
    EXPECT_EQ(in_pieces({i}), whole) << "cut at " << i << " of " << text;
    every.push_back(i);
  }
  EXPECT_EQ(in_pieces(every), whole) << "byte by byte: " << text;
  return whole;
}

const ReplyFormat kQwen3 = format("think", "hermes");

// B052
TEST(ReplyParser, ATagThatIsSplitIsNeverSeen) {
  ReplyParser parser(kQwen3, {true, nullptr, 0});
  std::vector<ReplyEvent> events = parser.feed("a</thin");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, ReplyEvent::Kind::kReasoning);
  EXPECT_EQ(events[0].text, "a");
  events = parser.feed("k>b");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, ReplyEvent::Kind::kContent);
  EXPECT_EQ(events[0].text, "b");
  EXPECT_TRUE(parser.flush().empty());
  EXPECT_EQ(parsed(kQwen3, "a</think>b", true), "{a}b");
}

TEST(ReplyParser, WhatIsNoTagAfterAllIsGivenOut) {
  EXPECT_EQ(parsed(kQwen3, "a</thin b</think>c</think>", true), "{a</thin b}c</think>");
  EXPECT_EQ(parsed(kQwen3, "1 < 2 <tool <tool_cal", false), "{}1 < 2 <tool <tool_cal");
  EXPECT_EQ(parsed(kQwen3, "<thin", false), "{}<thin");
}

TEST(ReplyParser, TheAnswerMayOpenTheReasoningItself) {
  EXPECT_EQ(parsed(kQwen3, "<think>\nhm\n\nwell\n</think>\n\nYes.\n"), "{hm\n\nwell}Yes.\n");
  EXPECT_EQ(parsed(kQwen3, "\n<think>\n\n</think>\n\nYes."), "{}Yes.");
  EXPECT_EQ(parsed(kQwen3, "Say <think>x</think>"), "{}Say <think>x</think>") << "not at the begin";
  EXPECT_EQ(parsed(kQwen3, "\n Yes."), "{}\n Yes.");
}

TEST(ReplyParser, ReasoningThatIsNotClosedIsAllThereIs) {
  EXPECT_EQ(parsed(kQwen3, "<think>\nso far\n"), "{so far}");
  EXPECT_EQ(parsed(kQwen3, "so far</thi", true), "{so far</thi}");
  EXPECT_EQ(parsed(kQwen3, "<tool_call>\n{\"name\": \"add\"}\n</tool_call>", true),
            "{<tool_call>\n{\"name\": \"add\"}\n</tool_call>}");
}

TEST(ReplyParser, WithoutAStyleAllIsContent) {
  const ReplyFormat none = format("none", "none");
  const std::string text = " <think>a</think>\n<tool_call>\n{\"name\": \"add\"}\n</tool_call>\n ";
  EXPECT_EQ(parsed(none, text), "{}" + text);
  EXPECT_EQ(parsed(none, text, true), "{}" + text);
}

TEST(ReplyParser, CallsAreTakenOutWithTheirArgumentsAsTheyAreWritten) {
  EXPECT_EQ(
      parsed(kQwen3,
             "<think>\nhm\n</think>\n\nLet me see.\n<tool_call>\n{\"name\": \"get_weather\", "
             "\"arguments\": {\"city\":  \"Paris\", \"n\": 1.50}}\n</tool_call>\n<tool_call>\n"
             "{\"name\": \"add\", \"arguments\": {}}\n</tool_call>"),
      "{hm}Let me see.[get_weather{\"city\":  \"Paris\", \"n\": 1.50}][add{}]");
}

// B067
TEST(ReplyParser, CallsSplitAfterEveryByteAreWhole) {
  const std::string arguments = R"({"t":"ÄÖÜ 日本 😊","n":{"a":[1]}})";
  const std::string call =
      "<tool_call>\n{\"name\":\"f\",\"arguments\":" + arguments + "}\n</tool_call>";
  EXPECT_EQ(parsed(kQwen3, call + "\n" + call), "{}[f" + arguments + "][f" + arguments + "]");
  EXPECT_EQ(parsed(kQwen3, call + "\n" + call.substr(0, 40)),
            "{}" + call.substr(0, 40) + "[f" + arguments + "]")
      << "cut by length: the second is no call";
}

TEST(ReplyParser, OnlyTheClosingTagOfTheLastCallMayBeMissing) {
  const std::string body = "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}";
  EXPECT_EQ(parsed(kQwen3, body), "{}[add{\"a\": 1}]");
  EXPECT_EQ(parsed(kQwen3, body + "\n</tool_c"), "{}[add{\"a\": 1}]");
  const std::string cut = body.substr(0, body.size() - 1);
  EXPECT_EQ(parsed(kQwen3, cut), "{}" + cut);
}

TEST(ReplyParser, WhatIsNoCallStaysContentWithItsTags) {
  for (const std::string body :
       {"{\"name\": \"add\", \"arguments\": {\"a\": }}", "{\"arguments\": {}}", "nothing",
        "{\"name\": \"\", \"arguments\": {}}", "{\"name\": \"add\", \"arguments\": [1]}",
        "{\"name\": \"add\", \"arguments\": \"no object\"}", "[]", "{\"a\": \"\n\"}",
        "{\"name\": \"add\", \"arguments\": {\"a\": 1, \"a\": 2}}", "{\"name\": \"add\"}}"}) {
    const std::string text = "x <tool_call>\n" + body + "\n</tool_call> y";
    EXPECT_EQ(parsed(kQwen3, text), "{}" + text);
    const std::string call = "<tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>";
    EXPECT_EQ(parsed(kQwen3, text + call), "{}" + text + "[add{}]") << "the next one is a call";
  }
}

TEST(ReplyParser, ATagInsideAStringEndsNoCall) {
  const std::string arguments = R"({"code": "print('</tool_call>') \" <tool_call>"})";
  EXPECT_EQ(parsed(kQwen3, "<tool_call>\n{\"name\": \"f\", \"arguments\": " + arguments +
                               "}\n</tool_call>done"),
            "{}done[f" + arguments + "]");
}

TEST(ReplyParser, ArgumentsThatWereWrittenAsTextAreTheirText) {
  EXPECT_EQ(parsed(kQwen3,
                   R"(<tool_call>{"arguments": "{\"a\": \"\\u00e4\"}", "name": "f"}</tool_call>)"),
            R"({}[f{"a": "\u00e4"}])");
  EXPECT_EQ(parsed(kQwen3, R"(<tool_call>{"name": "f"}</tool_call>)"), "{}[f{}]");
  EXPECT_EQ(parsed(kQwen3, R"(<tool_call>{"name": "f", "arguments": null}</tool_call>)"),
            "{}[f{}]");
  EXPECT_EQ(parsed(kQwen3, R"(<tool_call>{"name": "f", "parameters": {"a": 1}}</tool_call>)"),
            "{}[f{\"a\": 1}]");
  EXPECT_EQ(
      parsed(
          kQwen3,
          R"(<tool_call>{"type": "function", "function": {"name": "f", "arguments": {"name": "g"}}}</tool_call>)"),
      "{}[f{\"name\": \"g\"}]");
}

TEST(ReplyParser, WhiteSpaceNextToCallsIsDroppedUnlessContentStandsOnBothSides) {
  const std::string call = "<tool_call>{\"name\": \"f\"}</tool_call>";
  EXPECT_EQ(parsed(kQwen3, "\n\n" + call + "\n" + call + "\n"), "{}[f{}][f{}]");
  EXPECT_EQ(parsed(kQwen3, "a\n" + call + "\n\nb\n"), "{}a\n\n\nb\n[f{}]");
  EXPECT_EQ(parsed(kQwen3, "\n" + call + " b"), "{}b[f{}]");
}

TEST(ReplyParser, Qwen3CoderWritesParametersInTags) {
  const ReplyFormat coder = format("none", "qwen3_coder");
  EXPECT_EQ(
      parsed(coder,
             "I look.\n<tool_call>\n<function=get_weather>\n<parameter=city>\n42\n</parameter>\n"
             "<parameter=days>\n3\n</parameter>\n<parameter=raw>\n{\"a\": [1, 2]}\n</parameter>\n"
             "<parameter=text>\ntwo\nlines </function> \"q\"\n\n</parameter>\n"
             "<parameter=flag>\nTrue\n</parameter>\n</function>\n</tool_call>"),
      "{}I look.[get_weather{\"city\": \"42\", \"days\": 3, \"raw\": {\"a\": [1, 2]}, "
      "\"text\": \"two\\nlines </function> \\\"q\\\"\\n\", \"flag\": true}]");
  EXPECT_EQ(parsed(coder, "<tool_call>\n<function=add>\n</function>\n</tool_call>"), "{}[add{}]");
  EXPECT_EQ(parsed(coder, "<tool_call>\n<function=add>\n</function>\n"), "{}[add{}]");
  for (const std::string text : {"<tool_call>\n{\"name\": \"add\"}\n</tool_call>",
                                 "<tool_call>\n<function=add>\nno\n</function>",
                                 "<tool_call>\n<function=>\n</function>\n</tool_call>",
                                 "<tool_call>\n<function=add>\n<parameter=a>\n1",
                                 "<tool_call>\n<function=add><parameter=a>1</"
                                 "parameter><parameter=a>2</parameter></function></tool_call>"})
    EXPECT_EQ(parsed(coder, text), "{}" + text);
}

TEST(ReplyParser, OtherFamiliesHaveTheirOwnTags) {
  EXPECT_EQ(parsed(format("seed_oss", "seed_oss"),
                   "<seed:think>hm</seed:think>\n<seed:tool_call>\n<function=add>\n"
                   "<parameter=a>1</parameter>\n</function>\n</seed:tool_call>"),
            "{hm}[add{\"a\": 1}]");
  EXPECT_EQ(parsed(format("think", "glm"),
                   "<think></think>\n<tool_call>get_weather\n<arg_key>city</arg_key>\n"
                   "<arg_value>7</arg_value>\n</tool_call>\n<tool_call>add<arg_key>a</arg_key>"
                   "<arg_value>[1]</arg_value></tool_call><tool_call>add\n</tool_call>"),
            "{}[get_weather{\"city\": \"7\"}][add{\"a\": [1]}][add{}]");
  EXPECT_EQ(parsed(format("none", "apriel"),
                   "<tool_calls>[{\"name\": \"add\", \"arguments\": {\"a\": 1}}, {\"name\": \"f\", "
                   "\"arguments\": {\"b\": [2]}}]</tool_calls>"),
            "{}[add{\"a\": 1}][f{\"b\": [2]}]");
  EXPECT_EQ(
      parsed(format("none", "granite"), "<|tool_call|>[{\"name\": \"f\", \"arguments\": {}}]"),
      "{}[f{}]");
  EXPECT_EQ(parsed(format("none", "phi4_mini"),
                   "<|tool_call|>[{\"name\": \"f\", \"arguments\": {}}]<|/tool_call|>"),
            "{}[f{}]");
}

TEST(ReplyParser, MistralWritesAListOrANameWithArguments) {
  const ReplyFormat mistral = format("mistral", "mistral");
  EXPECT_EQ(parsed(mistral,
                   "[TOOL_CALLS][{\"name\": \"add\", \"arguments\": {\"a\": 1}}, {\"name\": \"f\", "
                   "\"arguments\": {}}]"),
            "{}[add{\"a\": 1}][f{}]");
  EXPECT_EQ(parsed(mistral,
                   "[THINK]hm[/THINK][TOOL_CALLS]add[ARGS]{\"a\": 1}[TOOL_CALLS]f[CALL_ID]123456789"
                   "[ARGS]{}"),
            "{hm}[add{\"a\": 1}][f{}]");
  const Reply reply = parse_reply(mistral, {}, "[TOOL_CALLS]f[CALL_ID]123456789[ARGS]{}");
  ASSERT_EQ(reply.calls.size(), 1u);
  EXPECT_EQ(reply.calls[0].id, "123456789") << "the model's own";
  for (const std::string text : {"[TOOL_CALLS]", "[TOOL_CALLS]two words", "[TOOL_CALLS]f[ARGS][1]",
                                 "[TOOL_CALLS]f[CALL_ID]1", "[TOOL_CALLS]f[ARG", "[TOOL_CALLS]f"})
    EXPECT_EQ(parsed(mistral, text), "{}" + text);
}

TEST(ReplyParser, Llama3AnswersWithBareJson) {
  const ReplyFormat llama = format("none", "llama3_json");
  EXPECT_EQ(parsed(llama, "{\"name\": \"add\", \"parameters\": {\"a\": 1}}"), "{}[add{\"a\": 1}]");
  EXPECT_EQ(parsed(llama,
                   "<|python_tag|>{\"name\": \"add\", \"parameters\": {}}; {\"name\": "
                   "\"get_weather\", \"parameters\": {\"city\": \"x\"}}\n"),
            "{}[add{}][get_weather{\"city\": \"x\"}]");
  EXPECT_EQ(parsed(llama, "{\"type\": \"function\", \"name\": \"add\", \"parameters\": {}}"),
            "{}[add{}]");
  for (const std::string text :
       {"{\"name\": \"Ada\", \"parameters\": {}}", "{\"answer\": 42}", "{}", "{\"name\": \"add\"",
        "It is {\"name\": \"add\", \"parameters\": {}}", "<|python_tag|>print(1)", "{ \"na"})
    EXPECT_EQ(parsed(llama, text), "{}" + text);
  EXPECT_TRUE(parse_reply(llama, {}, "{\"name\": \"add\", \"parameters\": {}}").calls.empty())
      << "no function was offered";
}

TEST(ReplyParser, IdsAreNineLettersAndDigitsAndAllDifferent) {
  std::set<std::string> ids;
  for (uint64_t key = 0; key < 50; ++key) {
    const std::string call = "<tool_call>{\"name\": \"f\"}</tool_call>";
    const Reply reply = parse_reply(kQwen3, {false, nullptr, key}, call + call + call);
    ASSERT_EQ(reply.calls.size(), 3u);
    for (const ToolCall& c : reply.calls) {
      EXPECT_EQ(c.id.size(), 9u);
      EXPECT_TRUE(std::all_of(c.id.begin(), c.id.end(), [](char ch) { return std::isalnum(ch); }));
      ids.insert(c.id);
    }
    EXPECT_EQ(parse_reply(kQwen3, {false, nullptr, key}, call).calls[0].id, reply.calls[0].id);
  }
  EXPECT_EQ(ids.size(), 150u);
}

// B050: what a stop string held back goes through the parser at the end.
TEST(ReplyParser, AReplyIsTheSameHoweverRandomTextIsCut) {
  std::mt19937 random(3);
  const std::vector<std::string> parts = {"<think>",
                                          "</think>",
                                          "<tool_call>",
                                          "</tool_call>",
                                          "{\"name\": \"add\", \"arguments\": {}}",
                                          "\n",
                                          " ",
                                          "a",
                                          "<",
                                          "{",
                                          "}",
                                          "\"",
                                          "<function=add>",
                                          "<parameter=a>",
                                          "</parameter>",
                                          "</function>",
                                          "[TOOL_CALLS]",
                                          "add",
                                          "[ARGS]",
                                          "[{\"name\": \"f\"}]",
                                          ";",
                                          "<arg_key>",
                                          "</arg_key>",
                                          "<arg_value>",
                                          "</arg_value>",
                                          "<|python_tag|>",
                                          "ä",
                                          "{\"name\""};
  const std::vector<ReplyFormat> formats = {kQwen3,
                                            format("think", "qwen3_coder"),
                                            format("mistral", "mistral"),
                                            format("think", "glm"),
                                            format("none", "llama3_json"),
                                            format("think", "granite")};
  for (int i = 0; i < 1500; ++i) {
    std::string text;
    for (size_t n = random() % 9; n > 0; --n) text += parts[random() % parts.size()];
    parsed(formats[random() % formats.size()], text, random() % 3 == 0);
  }
}

TEST(ReplyParser, TakesTimeLinearInALongCall) {
  ReplyParser parser(kQwen3, {});
  std::vector<ReplyEvent> events =
      parser.feed("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"");
  for (int i = 0; i < 200'000; ++i) parser.feed("0123456789");
  events = parser.feed("\"}}</tool_call>");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].call.arguments.size(), 2'000'009u);
}

TEST(Reply, IsWrittenAsTheApiNamesItsParts) {
  Node message = Node::make_map();
  parse_reply(kQwen3, {false, nullptr, 1}, "plain").write_to(message);
  EXPECT_EQ(to_json(message), R"({"content":"plain"})");
  const Reply reply = parse_reply(kQwen3, {false, nullptr, 1},
                                  "<think>hm</think><tool_call>{\"name\": \"f\"}</tool_call>");
  message = Node::make_map();
  reply.write_to(message);
  EXPECT_EQ(to_json(message),
            R"({"content":"","reasoning_content":"hm","tool_calls":[{"id":")" + reply.calls[0].id +
                R"(","type":"function","function":{"name":"f","arguments":"{}"}}]})");
}

}  // namespace
}  // namespace dovetail::core
