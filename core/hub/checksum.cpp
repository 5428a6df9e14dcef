#include "core/hub/checksum.hpp"

#include <openssl/evp.h>

#include <algorithm>

#include "core/base/files.hpp"

namespace dovetail::core {

Checksum Checksum::parse(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
    text = text.substr(1, text.size() - 2);
  Checksum out;
  if (text.size() == 64) out.kind = Kind::kSha256;
  if (text.size() == 40) out.kind = Kind::kGitSha1;
  for (char c : text) {
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return {};
    out.hex += c;
  }
  return out.kind == Kind::kNone ? Checksum() : out;
}

const char* Checksum::name() const {
  switch (kind) {
    case Kind::kSha256:
      return "SHA-256";
    case Kind::kGitSha1:
      return "git SHA-1";
    default:
      return "checksum";
  }
}

void Hasher::Free::operator()(void* context) const {
  EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context));
}

Result<Hasher> Hasher::begin(Checksum::Kind kind, uint64_t size) {
  Hasher out;
  out.kind_ = kind;
  if (kind == Checksum::Kind::kNone) return out;
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  out.context_.reset(context);
  const EVP_MD* function = kind == Checksum::Kind::kSha256 ? EVP_sha256() : EVP_sha1();
  if (!context || EVP_DigestInit_ex(context, function, nullptr) != 1)
    return internal_error("OpenSSL gives no hash function of this kind");
  if (kind == Checksum::Kind::kGitSha1) {
    const std::string head = "blob " + std::to_string(size);
    out.add({head.c_str(), head.size() + 1});  // with its NUL
  }
  return out;
}

void Hasher::add(std::string_view bytes) {
  if (context_)
    EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_.get()), bytes.data(), bytes.size());
}

Checksum Hasher::finish() {
  if (!context_) return {};
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int n = 0;
  EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(context_.get()), digest, &n);
  context_.reset();
  constexpr char kDigits[] = "0123456789abcdef";
  Checksum out{kind_, {}};
  for (unsigned int i = 0; i < n; ++i) {
    out.hex += kDigits[digest[i] >> 4];
    out.hex += kDigits[digest[i] & 15];
  }
  return out;
}

Result<Checksum> checksum_of(Checksum::Kind kind, std::string_view text) {
  DVT_TRY(Hasher hasher, Hasher::begin(kind, text.size()));
  hasher.add(text);
  return hasher.finish();
}

Status hash_file(const std::filesystem::path& path, uint64_t n, Hasher& hasher,
                 const std::function<bool(uint64_t n_bytes)>& step) {
  DVT_TRY(const std::shared_ptr<File> file, File::open(path));
  std::string part(uint64_t{1} << 20, '\0');
  for (uint64_t at = 0; at < n;) {
    const uint64_t n_now = std::min<uint64_t>(part.size(), n - at);
    DVT_TRY(file->read_at(at, part.data(), n_now));
    hasher.add(std::string_view(part).substr(0, n_now));
    at += n_now;
    if (!step(n_now)) return {Code::kCancelled, "interrupted"};
  }
  return Status::ok();
}

}  // namespace dovetail::core
