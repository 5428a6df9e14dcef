// Checksum: what a hub says that a file's bytes are. Hasher: the same of bytes as they come.
//
// The hash functions are OpenSSL's: they take the processor's instructions, ten times the speed of
// dovetail/sha256.hpp, and the files have gigabytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/status.hpp"

namespace dovetail::core {

/// A large file's SHA-256, or of the others git's: SHA-1 over "blob SIZE", a NUL and the bytes.
struct Checksum {
  enum class Kind : uint8_t { kNone, kSha256, kGitSha1 };
  Kind kind = Kind::kNone;
  std::string hex;  // lower case

  /// By the number of digits: 64 are SHA-256, 40 git's SHA-1, others none. Quotes around them, as an ETag
  /// has, are left out.
  static Checksum parse(std::string_view text);
  const char* name() const;  // "SHA-256", "git SHA-1", "checksum"
  bool operator==(const Checksum&) const = default;
};

class Hasher {
 public:
  /// `size` is that of all bytes: git's hash begins with it.
  /// errors  kInternal: the library has no such function.
  static Result<Hasher> begin(Checksum::Kind kind, uint64_t size);
  void add(std::string_view bytes);
  /// The checksum of what was added; the hasher is at its end.
  Checksum finish();

 private:
  struct Free {
    void operator()(void* context) const;
  };
  Checksum::Kind kind_ = Checksum::Kind::kNone;
  std::unique_ptr<void, Free> context_;
};

/// Of a whole text.
Result<Checksum> checksum_of(Checksum::Kind kind, std::string_view text);

/// Adds a file's first n bytes. `step` is told of each part and may stop it by returning false.
/// errors  kIo, kFormat: it ends before. kCancelled.
Status hash_file(const std::filesystem::path& path, uint64_t n, Hasher& hasher,
                 const std::function<bool(uint64_t n_bytes)>& step);

}  // namespace dovetail::core
