#include "core/text/template/loop.hpp"

#include <algorithm>

#include "core/text/template/function.hpp"
#include "core/text/template/interpreter.hpp"

namespace dovetail::core::jinja {

Loop::Loop(std::vector<Value> items, Keep keep, int depth)
    : items_(std::move(items)), keep_(std::move(keep)), depth_(depth) {
  for (const Value& v : items_) items_depth_ = std::max(items_depth_, v.depth());
}

bool Loop::advance() {
  if (peek() == nullptr) return false;
  previous_ = index0_ < 0 ? Value::undefined("there is no previous item") : std::move(current_);
  current_ = std::move(ahead_.front());
  ahead_.pop_front();
  ++index0_;
  return true;
}

void Loop::finish() {
  last_changed_.reset();
  keep_ = nullptr;
  again = nullptr;
}

const Value* Loop::peek() const {
  while (ahead_.empty() && n_asked_ < items_.size()) ask_next();
  return ahead_.empty() ? nullptr : &ahead_.front();
}

int64_t Loop::n_kept() const {
  while (n_asked_ < items_.size()) ask_next();
  return index0_ + 1 + static_cast<int64_t>(ahead_.size());
}

void Loop::ask_next() const {
  const Value& item = items_[n_asked_++];
  if (keep_ == nullptr || keep_(item)) ahead_.push_back(item);
}

Value Loop::call(Interpreter&, const Args& args) {
  if (again == nullptr) {
    fail("the loop must have the 'recursive' marker to be called recursively");
  }
  if (args.positional.size() != 1 || !args.named.empty()) fail("loop() takes one argument");
  return again(args.positional[0]);
}

Value Loop::attribute(std::string_view name) const {
  if (name == "index") return Value::integer(index0_ + 1);
  if (name == "index0") return Value::integer(index0_);
  if (name == "first") return Value::boolean(index0_ == 0);
  if (name == "last") return Value::boolean(peek() == nullptr);
  if (name == "length") return Value::integer(n_kept());
  if (name == "revindex") return Value::integer(n_kept() - index0_);
  if (name == "revindex0") return Value::integer(n_kept() - index0_ - 1);
  if (name == "depth") return Value::integer(depth_ + 1);
  if (name == "depth0") return Value::integer(depth_);
  if (name == "previtem") return previous_;
  if (name == "nextitem") {
    const Value* next = peek();
    return next == nullptr ? Value::undefined("there is no next item") : *next;
  }
  const auto self = std::const_pointer_cast<Loop>(shared_from_this());
  if (name == "cycle") {
    return make_function(depth() + 1,
                         [self](Interpreter&, const Args& args) { return self->cycle(args); });
  }
  if (name == "changed") {
    return make_function(depth() + 1, [self](Interpreter& interp, const Args& args) {
      return self->changed(args, interp.budget());
    });
  }
  return {};
}

Value Loop::cycle(const Args& args) const {
  if (args.positional.empty()) fail("no items for cycling given");
  return args.positional[static_cast<size_t>(index0_) % args.positional.size()];
}

Value Loop::changed(const Args& args, Budget& budget) {
  const std::vector<Value>& now = args.positional;
  const bool same = last_changed_.has_value() && last_changed_->size() == now.size() &&
                    std::equal(now.begin(), now.end(), last_changed_->begin(),
                               [&](const Value& a, const Value& b) { return equal(a, b, budget); });
  if (!same) last_changed_ = now;
  return Value::boolean(!same);
}

}  // namespace dovetail::core::jinja
