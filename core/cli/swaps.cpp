#include "core/cli/swaps.hpp"

#include <algorithm>
#include <charconv>

#include "core/base/log.hpp"
#include "core/cli/answer.hpp"

namespace dovetail::core {

Result<Swaps> Swaps::parse(const std::vector<std::string>& texts) {
  Swaps out;
  for (const std::string& text : texts) {
    const size_t colon = text.find(':');
    uint32_t after = 0;
    const char* const end = text.data() + std::min(colon, text.size());
    const auto [stop, error] = std::from_chars(text.data(), end, after);
    if (colon == std::string::npos || colon + 1 == text.size() || error != std::errc() ||
        stop != end)
      return invalid("--swap: got \"" + text + "\", expected TOKENS:BACKEND such as 20:reference");
    out.waiting_.push_back({after, text.substr(colon + 1)});
  }
  std::stable_sort(out.waiting_.begin(), out.waiting_.end(),
                   [](const Swap& a, const Swap& b) { return a.after < b.after; });
  return out;
}

Status Swaps::before_step(size_t n_tokens, Session& session, Engine& engine) {
  for (; next_ < waiting_.size() && waiting_[next_].after <= n_tokens; ++next_) {
    DVT_TRY(engine.settle());
    const std::string before = session.backend_text();
    const Result<BackendMove> moved = session.move_to(waiting_[next_].backend, "--swap", engine);
    Node done = Node::make_map();
    done.set("after_tokens", Node::make_int(static_cast<int64_t>(n_tokens)));
    done.set("backend", Node::make_string(session.model().backend_name()));
    if (moved) {
      done.set("cache_tokens", Node::make_int(static_cast<int64_t>(moved->states.n_tokens)));
      done.set("state_bytes", Node::make_int(static_cast<int64_t>(moved->states.n_bytes)));
      done.set("seconds", Node::make_float(moved->seconds));
      said_ += "after " + std::to_string(n_tokens) + " tokens on " + session.backend_text() + ": " +
               move_text(*moved) + "\n";
    } else {
      done.set("error", Node::make_string(moved.status().message()));
      log_error("backend", "still on " + before + ": " + moved.status().message());
    }
    done_.items().push_back(std::move(done));
  }
  return Status::ok();
}

std::string Swaps::finish() const {
  for (size_t i = next_; i < waiting_.size(); ++i)
    log_warn("backend", "the answer ended before --swap " + std::to_string(waiting_[i].after) +
                            ":" + waiting_[i].backend);
  return said_;
}

}  // namespace dovetail::core
