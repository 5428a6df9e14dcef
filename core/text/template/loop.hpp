// What `loop` is inside a for: where the loop stands, and, in a recursive one, how to go deeper.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/text/template/value.hpp"

namespace dovetail::core::jinja {

class Loop : public Object, public std::enable_shared_from_this<Loop> {
 public:
  /// Whether the loop's own `if` keeps an item. It is asked as late as possible, since the loop's
  /// body may change what the answer is. Empty: all are kept.
  using Keep = std::function<bool(const Value& item)>;

  Loop(std::vector<Value> items, Keep keep, int depth);

  /// Moves to the next item; false at the end.
  bool advance();
  const Value& item() const { return current_; }
  /// Drops what could hold the loop itself.
  void finish();

  /// In a recursive loop: runs it over other items, `loop(children)`.
  std::function<Value(const Value& items)> again;

  const char* type_name() const override { return "LoopContext"; }
  bool is_callable() const override { return again != nullptr; }
  Value call(Interpreter& interp, const Args& args) override;
  Value attribute(std::string_view name) const override;
  uint32_t depth() const override { return items_depth_ + 1; }

 private:
  const Value* peek() const;
  int64_t n_kept() const;
  void ask_next() const;
  Value cycle(const Args& args) const;
  Value changed(const Args& args, Budget& budget);

  std::vector<Value> items_;
  Keep keep_;
  mutable size_t n_asked_ = 0;       // of items_
  mutable std::deque<Value> ahead_;  // those of them that were kept and not yet reached
  Value previous_;
  Value current_;
  int64_t index0_ = -1;
  int depth_;
  uint32_t items_depth_ = 0;
  std::optional<std::vector<Value>> last_changed_;
};

}  // namespace dovetail::core::jinja
