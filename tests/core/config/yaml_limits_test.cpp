// Texts that ask for too much: each is refused quickly, in little memory, and names the limit (B091).
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/core/config/nodes.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DVT_UNDER_SANITIZER 1
#else
#define DVT_UNDER_SANITIZER 0
#endif

namespace dovetail::core {
namespace {

std::string repeated(const std::string& unit, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += unit;
  return out;
}

std::string bomb() {
  std::string text = "a0: &a0 [x, x]\n";
  for (int i = 1; i <= 9; ++i) {
    const std::string below = std::string("*a").append(std::to_string(i - 1));
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + below +
            repeated("," + below, 8) + "]\n";
  }
  return text;
}

// Parses in a child that may map 50 MB more than it has, and says whether it was refused.
bool refused_within_50_mb(const std::string& text) {
  const pid_t child = fork();
  if (child == 0) {
    if (!DVT_UNDER_SANITIZER) {  // shadow memory knows no such limit
      long n_pages = 0;
      if (FILE* statm = std::fopen("/proc/self/statm", "r"); statm != nullptr) {
        if (std::fscanf(statm, "%ld", &n_pages) != 1) n_pages = 0;
        std::fclose(statm);
      }
      const rlim_t limit = static_cast<rlim_t>(n_pages * sysconf(_SC_PAGESIZE)) + (50u << 20);
      const rlimit bounds{limit, limit};
      if (n_pages == 0 || setrlimit(RLIMIT_AS, &bounds) != 0) _exit(3);
    }
    const Result<Node> node = parse_yaml(text, "x.yaml");
    _exit(node.is_ok() ? 1 : node.status().code() == Code::kNoMemory ? 2 : 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void expect_refused(const std::string& text, const std::string& limit) {
  const auto start = std::chrono::steady_clock::now();
  const std::string message = fault_of(text);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  EXPECT_NE(message.find(limit), std::string::npos) << message;
  EXPECT_LT(took.count(), 20'000) << message;  // not a measurement: catches what never ends
  EXPECT_TRUE(refused_within_50_mb(text)) << message;
}

TEST(YamlLimits, BoundsTheNestingOfBrackets) {
  expect_refused(repeated("[", 100'000), "64 levels");
  expect_refused(repeated("{", 100'000), "64 levels");
  expect_refused(repeated("[{a: ", 20'000), "64 levels");
  expect_refused("a: " + repeated("[", 1'000'000), "131072 bytes");
  expect_refused(repeated("[", 65) + repeated("]", 65), "64 levels");
}

TEST(YamlLimits, BoundsTheNestingOfBlocks) {
  expect_refused(repeated("- ", 100'000), "64 levels");
  expect_refused(repeated("? ", 100'000), "64 levels");
  std::string stairs;
  for (int i = 0; i < 200; ++i) stairs += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  expect_refused(stairs, "64 levels");
}

TEST(YamlLimits, TakesExactly64Levels) {
  EXPECT_EQ(fault_of(repeated("[", 64) + "1" + repeated("]", 64)), "");
  EXPECT_EQ(fault_of(repeated("- ", 64) + "1"), "");
}

TEST(YamlLimits, BoundsWhatAliasesExpandTo) {
  ASSERT_LT(bomb().size(), 500u);
  expect_refused(bomb(), "10000 values");
  std::string doubled = "- &a0 [[[[[[1]]]]]]\n";
  for (int i = 1; i < 60; ++i) {
    doubled += "- &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + ", *a" +
               std::to_string(i - 1) + "]\n";
  }
  expect_refused(doubled, "10000 values");
}

TEST(YamlLimits, RefusesAnAliasInsideItsAnchor) {
  expect_refused("&x\n- *x\n", "inside the value that it names");
  expect_refused("a: &x {b: [*x]}\n", "inside the value that it names");
}

TEST(YamlLimits, BoundsTheNumberOfValues) {
  expect_refused("[" + repeated("1,", 60'000) + "]", "10000 values");
  expect_refused(repeated("- 1\n", 60'000), "10000 values");
  expect_refused("a: [" + repeated("[],", 60'000) + "]", "10000 values");
  expect_refused("[" + repeated("[],", 60'000) + "]: 1", "131072 bytes");
}

TEST(YamlLimits, BoundsTheSizeOfTextAndScalars) {
  expect_refused("a: " + std::string(50'000'000, 'x'), "1048576 bytes");
  expect_refused("a: \"" + std::string(900'000, 'x') + "\"", "131072 bytes");
  expect_refused("a: |\n" + repeated("  x\n", 200'000), "131072 bytes");
  EXPECT_EQ(parsed("a: " + std::string(100'000, 'x')).find("a")->as_string().size(), 100'000u);
}

TEST(YamlLimits, SurvivesLongRunsOfEveryIndicator) {
  for (const char* unit : {":",
                           ": ",
                           "?",
                           "? ",
                           "-",
                           "-\n",
                           "!",
                           "! ",
                           "!!",
                           "&",
                           "&a ",
                           "*",
                           "*a ",
                           "|",
                           ">",
                           "'",
                           "\"",
                           "%",
                           "#",
                           "@",
                           "`",
                           ",",
                           "]",
                           "}",
                           "[]",
                           "{}",
                           "[?",
                           "{?",
                           "{:",
                           "[:",
                           "a: ",
                           "- a: ",
                           "a:\n",
                           "\t",
                           "\r\n",
                           "---\n",
                           "...\n",
                           "%YAML 1.2\n",
                           "<<: ",
                           "\\",
                           "\xEF\xBB\xBF",
                           "{a: &x *x,"}) {
    const auto start = std::chrono::steady_clock::now();
    (void)parse_yaml(repeated(unit, 20'000), "x.yaml");
    (void)parse_yaml("a: " + repeated(unit, 20'000), "x.yaml");
    (void)parse_yaml(std::string("[").append(repeated(unit, 20'000)).append("]"), "x.yaml");
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    EXPECT_LT(took.count(), 60'000) << unit;  // not a measurement: catches what never ends
  }
}

}  // namespace
}  // namespace dovetail::core
