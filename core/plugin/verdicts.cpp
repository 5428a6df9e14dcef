// One small file per verdict: "good", or "bad: " and the reason.
#include "core/plugin/verdicts.hpp"

#include <dovetail/abi/plugin.h>

#include <system_error>

#include "core/base/files.hpp"
#include "core/base/log.hpp"

namespace dovetail::core {
namespace {

constexpr std::string_view kGood = "good\n";
constexpr std::string_view kBad = "bad: ";

}  // namespace

// A host built otherwise may find otherwise.
std::filesystem::path Verdicts::file_of(const std::string& sha256) const {
  return *folder_ / (sha256 + "." DVT_ABI_HASH "." DVT_SANITIZER_NAME);
}

std::optional<Status> Verdicts::find(const std::string& sha256) const {
  if (!folder_) return std::nullopt;
  const auto file = File::open(file_of(sha256));
  if (!file) return std::nullopt;
  const Result<std::string> text = (*file)->read_all(uint64_t{64} * 1024);
  if (!text) return std::nullopt;
  if (*text == kGood) return Status::ok();
  if (!text->starts_with(kBad)) return std::nullopt;
  return unsupported(text->substr(kBad.size()) + " (found earlier; remove " +
                     file_of(sha256).string() + " to try again)");
}

void Verdicts::remember(const std::string& sha256, const Status& verdict) const {
  if (!folder_) return;
  std::error_code error;
  std::filesystem::create_directories(*folder_, error);
  const std::string text =
      verdict.is_ok() ? std::string(kGood) : std::string(kBad) + verdict.message();
  if (const Status written = write_file(file_of(sha256), text); !written)
    log_debug("plugins", written.message());
}

}  // namespace dovetail::core
