#include "core/base/nearest.hpp"

#include <algorithm>
#include <cstddef>

namespace dovetail::core {
namespace {

constexpr size_t kMaxNameBytes = 64;  // longer ones are not compared: the work is a product

// Optimal string alignment distance over three rows.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({replace, last[j] + 1, now[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) now[j] = std::min(now[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& names) {
  if (name.size() > kMaxNameBytes) return "";
  std::string best;
  size_t best_distance = std::min(std::max<size_t>(1, name.size() / 3) + 1, name.size());
  for (const std::string& candidate : names) {
    if (candidate.size() > kMaxNameBytes) continue;
    const size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& names) {
  const std::string best = nearest_name(name, names);
  return best.empty() ? "" : ", did you mean \"" + best + "\"?";
}

}  // namespace dovetail::core
