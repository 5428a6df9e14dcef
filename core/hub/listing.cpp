#include "core/hub/listing.hpp"

#include <algorithm>
#include <set>

#include "core/base/files.hpp"
#include "core/base/json.hpp"
#include "core/base/log.hpp"

namespace dovetail::core {
namespace {

constexpr uint64_t kLongestListing = 64 << 20;

class TextBody : public HttpBody {
 public:
  explicit TextBody(uint64_t max_bytes) : max_bytes_(max_bytes) {}
  std::string text;

  Status begin(const HttpReply&) override {
    text.clear();
    return Status::ok();
  }
  Status write(std::string_view bytes) override {
    if (bytes.size() > max_bytes_ - text.size())
      return bad_format("longer than " + bytes_text(max_bytes_));
    text += bytes;
    return Status::ok();
  }

 private:
  uint64_t max_bytes_;
};

Result<std::string> get_text(HttpClient& client, const HubAccess& access, const std::string& url,
                             const std::string& what, uint64_t max_bytes, uint32_t n_retries,
                             const PullEvents& events) {
  // Nobody there is mostly a machine without a network, whose user waits.
  constexpr uint32_t kRetriesOfNobody = 2;
  Retries retries(n_retries, events), of_nobody(std::min(n_retries, kRetriesOfNobody), events);
  while (true) {
    TextBody body(max_bytes);
    const HttpReply reply = client.get({url, 0, ""}, body);
    if (reply.is_good()) return std::move(body.text);
    const Status failure = refusal(reply, access, what);
    if (!reply.may_pass) return failure;
    DVT_TRY((reply.is_connected ? retries : of_nobody).wait(failure, reply.retry_after_s));
  }
}

Result<HubFile> read_file(const Node& node, const std::string& source) {
  const Node* name = node.find("rfilename");
  if (!name || !name->is_string())
    return bad_format(source + ": an entry of \"siblings\" has no \"rfilename\"");
  HubFile out;
  out.name = name->as_string();
  const Node* size = node.find("size");
  if (size && size->is_int() && size->as_int() >= 0)
    out.size = static_cast<uint64_t>(size->as_int());
  const Node* blob = node.find("blobId");
  if (blob && blob->is_string()) out.checksum = Checksum::parse(blob->as_string());
  const Node* lfs = node.find("lfs");
  if (!lfs || !lfs->is_map()) return out;
  // The blob of a large file is a pointer to it; what counts is what that says.
  const Node* sha256 = lfs->find("sha256") ? lfs->find("sha256") : lfs->find("oid");
  out.checksum = sha256 && sha256->is_string() ? Checksum::parse(sha256->as_string()) : Checksum();
  const Node* lfs_size = lfs->find("size");
  if (lfs_size && lfs_size->is_int() && lfs_size->as_int() >= 0)
    out.size = static_cast<uint64_t>(lfs_size->as_int());
  return out;
}

}  // namespace

Result<std::string> model_id(const std::string& text, const HubAccess& access) {
  std::string id = text;
  if (id.starts_with(access.endpoint + "/")) id = id.substr(access.endpoint.size() + 1);
  while (id.ends_with('/')) id.pop_back();
  const size_t slash = id.find('/');
  const auto is_part = [](std::string_view part) {
    return !part.empty() && part.front() != '.' && part.front() != '-' &&
           part.find("..") == std::string_view::npos &&
           std::all_of(part.begin(), part.end(), [](char c) {
             return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                    c == '-' || c == '_' || c == '.';
           });
  };
  const bool is_good = slash == std::string::npos
                           ? is_part(id)
                           : is_part(std::string_view(id).substr(0, slash)) &&
                                 is_part(std::string_view(id).substr(slash + 1));
  if (!is_good)
    return invalid("\"" + printable(text) +
                   "\" names no model of a hub, expected ORG/NAME, such as Qwen/Qwen3-0.6B");
  return id;
}

Status refusal(const HttpReply& reply, const HubAccess& access, const std::string& what) {
  if (reply.transfer.code() == Code::kCancelled) return reply.transfer;
  if (!reply.transfer.is_ok()) return reply.transfer.in(what);
  const std::string hub = access.endpoint.substr(access.endpoint.find("://") + 3);
  const std::string with_token =
      access.token.empty() ? "; give a token in HF_TOKEN" : "; the token given does not open it";
  if (reply.error_code == "GatedRepo")
    return invalid(what + ": is gated: accept its terms on its page of " + hub +
                   (access.token.empty() ? " and give a token in HF_TOKEN"
                                         : " as the user of the token that is given"));
  if (reply.error_code == "RevisionNotFound")
    return invalid(what + ": has no such revision; --revision takes a branch, a tag or a commit");
  if (reply.error_code == "EntryNotFound") return invalid(what + ": is not there any more");
  const std::string said = reply.error_message.empty()
                               ? ""
                               : " (" + hub + " says: " + printable(reply.error_message) + ")";
  const std::string status = "HTTP status " + std::to_string(reply.status);
  switch (reply.status) {
    case 401:
      if (!access.token.empty() && reply.error_code.empty())
        return invalid(what + ": " + hub + " does not know the token that is given" + said);
      [[fallthrough]];  // the hub does not tell strangers what is private
    case 404:
      return invalid(what + ": " + hub + " has no such model or file, or it is private" +
                     with_token + said);
    case 403:
      return invalid(what + ": " + hub + " refuses it" + with_token + said);
    case 429:
      return io_error(what + ": " + hub + " takes no more requests for now, " + status +
                      (access.token.empty() ? "; with a token in HF_TOKEN it takes more" : ""));
    default:
      return io_error(what + ": " + hub + " answers with " + status + said);
  }
}

Result<HubListing> parse_listing(const std::string& text, const std::string& source,
                                 const std::string& id) {
  JsonLimits limits;
  limits.lone_surrogates = LoneSurrogates::kReplace;
  DVT_TRY(const Node root, parse_json(text, source, limits));
  const Node* sha = root.find("sha");
  const Node* siblings = root.find("siblings");
  if (!sha || !sha->is_string() || Checksum::parse(sha->as_string()).hex.empty())
    return bad_format(source + ": has no \"sha\" of a commit: is this a model hub?");
  if (!siblings || !siblings->is_list())
    return bad_format(source + ": has no list \"siblings\" of files");
  HubListing out{id, sha->as_string(), {}};
  std::set<std::string> names;
  for (const Node& node : siblings->items()) {
    DVT_TRY(HubFile file, read_file(node, source));
    if (!names.insert(file.name).second)
      return bad_format(source + ": lists \"" + printable(file.name) + "\" twice");
    out.files.push_back(std::move(file));
  }
  return out;
}

Result<HubListing> fetch_listing(HttpClient& client, const HubAccess& access, const std::string& id,
                                 const std::string& revision, uint32_t n_retries,
                                 const PullEvents& events) {
  const std::string url = access.endpoint + "/api/models/" + HttpClient::escaped(id, true) +
                          "/revision/" + HttpClient::escaped(revision, false) + "?blobs=true";
  const std::string what = revision == "main" ? id : id + " at " + printable(revision);
  DVT_TRY(const std::string text,
          get_text(client, access, url, what, kLongestListing, n_retries, events));
  return parse_listing(text, access.endpoint + ": the listing of " + what, id);
}

Result<std::string> fetch_text(HttpClient& client, const HubAccess& access,
                               const HubListing& listing, const HubFile& file, uint64_t max_bytes,
                               uint32_t n_retries, const PullEvents& events) {
  const std::string what = listing.id + ": " + printable(file.name);
  DVT_TRY(std::string text, get_text(client, access, file_url(access, listing, file), what,
                                     max_bytes, n_retries, events));
  if (file.checksum.kind == Checksum::Kind::kNone) return text;
  DVT_TRY(const Checksum got, checksum_of(file.checksum.kind, text));
  if (got != file.checksum)
    return bad_format(what + ": has " + got.name() + " " + got.hex + ", expected " +
                      file.checksum.hex);
  return text;
}

std::string file_url(const HubAccess& access, const HubListing& listing, const HubFile& file) {
  return access.endpoint + "/" + HttpClient::escaped(listing.id, true) + "/resolve/" +
         listing.commit + "/" + HttpClient::escaped(file.name, true);
}

}  // namespace dovetail::core
