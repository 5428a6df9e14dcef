// A map behind a lock: backends look ops up when they compile, not when they run.
#include "core/plugin/op_set.hpp"

#include <exception>
#include <mutex>

#include "core/base/log.hpp"

namespace dovetail::core {

OpSet::OpSet() {
  table_ = {sizeof(dvt_ops_v1), 0, this,
            [](void* self, dvt_str name, uint32_t rev) noexcept -> const dvt_op_v1* {
              try {
                return static_cast<OpSet*>(self)->find({name.p, static_cast<size_t>(name.n)}, rev);
              } catch (const std::exception&) {
                return nullptr;
              }
            }};
}

Status OpSet::add(const dvt_op_v1* op) {
  if (op == nullptr || !DVT_HAS(op, run) || op->infer == nullptr || op->name.p == nullptr) {
    return invalid("an op of a plugin lacks its name, shape rule or function");
  }
  std::string name(op->name.p, op->name.n);
  const size_t slash = name.find('/');
  if (slash == 0 || slash == std::string::npos || slash + 1 == name.size()) {
    return invalid("op \"" + printable(name) + "\" is not named OWNER/OP");
  }
  const std::unique_lock lock(mutex_);
  const auto [it, is_new] = ops_.try_emplace({name, op->rev}, op);
  if (!is_new && it->second != op) {
    return invalid("op \"" + printable(name) + "\" revision " + std::to_string(op->rev) +
                   " is there from another plugin");
  }
  return Status::ok();
}

const dvt_op_v1* OpSet::find(std::string_view name, uint32_t rev) const {
  const std::shared_lock lock(mutex_);
  const auto it = ops_.find({std::string(name), rev});
  return it == ops_.end() ? nullptr : it->second;
}

std::vector<const dvt_op_v1*> OpSet::all() const {
  const std::shared_lock lock(mutex_);
  std::vector<const dvt_op_v1*> out;
  for (const auto& [key, op] : ops_) out.push_back(op);
  return out;
}

}  // namespace dovetail::core
