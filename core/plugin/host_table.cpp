// No exception leaves a function here: running out of memory is DVT_ENOMEM or a null.
#include "core/plugin/host_table.hpp"

#include <algorithm>
#include <exception>
#include <new>

#include "core/base/json.hpp"
#include "core/base/log.hpp"

namespace dovetail::core {
namespace {

dvt_code give_up(dvt_call* call, dvt_code code, std::string_view message) noexcept {
  if (call != nullptr && call->fail != nullptr) call->fail(call, code, abi_text(message), {});
  return code;
}

dvt_code give_up(dvt_call* call, const Status& status) noexcept {
  return give_up(call, static_cast<dvt_code>(status.code()), status.message());
}

template <class Fn>
dvt_code guarded(dvt_call* call, Fn&& fn) noexcept {
  try {
    return fn();
  } catch (const std::bad_alloc&) {
    return give_up(call, DVT_ENOMEM, "the host is out of memory");
  } catch (const std::exception& e) {
    return give_up(call, DVT_EINTERNAL, e.what());
  }
}

// ---------------------------------------------------------------- documents

uint32_t doc_kind(void*, dvt_doc doc) noexcept {
  if (doc == 0) return DVT_DOC_NULL;
  switch (doc_node(doc)->kind()) {
    case Node::Kind::kNull:
      return DVT_DOC_NULL;
    case Node::Kind::kBool:
      return DVT_DOC_BOOL;
    case Node::Kind::kInt:
      return DVT_DOC_INT;
    case Node::Kind::kFloat:
      return DVT_DOC_FLOAT;
    case Node::Kind::kString:
      return DVT_DOC_STR;
    case Node::Kind::kList:
      return DVT_DOC_LIST;
    case Node::Kind::kMap:
      return DVT_DOC_MAP;
  }
  return DVT_DOC_NULL;
}

uint64_t doc_len(void*, dvt_doc doc) noexcept {
  const Node* node = doc_node(doc);
  if (node == nullptr) return 0;
  return node->is_list() ? node->items().size() : node->is_map() ? node->entries().size() : 0;
}

dvt_doc doc_find(void*, dvt_doc doc, dvt_str key) noexcept {
  const Node* node = doc_node(doc);
  if (node == nullptr) return 0;
  const Node* value = node->find(text_of(key));
  return value == nullptr ? 0 : doc_handle(*value);
}

dvt_doc doc_at(void* self, dvt_doc doc, uint64_t i, dvt_str* key) noexcept {
  if (key != nullptr) *key = {};
  if (i >= doc_len(self, doc)) return 0;
  const Node& node = *doc_node(doc);
  if (node.is_list()) return doc_handle(node.items()[i]);
  const Node::Entry& entry = node.entries()[i];
  if (key != nullptr) *key = abi_text(entry.first);
  return doc_handle(entry.second);
}

dvt_code doc_str(void*, dvt_doc doc, dvt_str* out) noexcept {
  const Node* node = doc_node(doc);
  if (node == nullptr || !node->is_string()) return DVT_EINVAL;
  *out = abi_text(node->as_string());
  return DVT_OK;
}

dvt_code doc_i64(void*, dvt_doc doc, int64_t* out) noexcept {
  const Node* node = doc_node(doc);
  if (node == nullptr || !node->is_int()) return DVT_EINVAL;
  *out = node->as_int();
  return DVT_OK;
}

dvt_code doc_f64(void*, dvt_doc doc, double* out) noexcept {
  const Node* node = doc_node(doc);
  if (node == nullptr || !node->is_number()) return DVT_EINVAL;
  *out = node->as_float();
  return DVT_OK;
}

dvt_code doc_bool(void*, dvt_doc doc, uint32_t* out) noexcept {
  const Node* node = doc_node(doc);
  if (node == nullptr || !node->is_bool()) return DVT_EINVAL;
  *out = node->as_bool() ? 1 : 0;
  return DVT_OK;
}

dvt_code doc_where(void*, dvt_doc doc, char* out, uint64_t cap, uint64_t* need) noexcept {
  return guarded(nullptr, [&] {
    const Node* node = doc_node(doc);
    std::string text;  // empty: nobody knows
    if (node != nullptr && node->origin().source != nullptr) text = node->origin().str();
    *need = text.size();
    if (text.size() > cap) return DVT_ETOOSMALL;
    std::copy(text.begin(), text.end(), out);
    return DVT_OK;
  });
}

// ---------------------------------------------------------------- files

dvt_code dir_open(void*, dvt_call* call, dvt_dir dir, dvt_str name, dvt_file* out) noexcept {
  return guarded(call, [&]() -> dvt_code {
    *out = 0;
    if (dir == 0)
      return give_up(call, DVT_EINVAL,
                     "there is no folder to open \"" + std::string(text_of(name)) + "\" in");
    const Result<dvt_file> file = HostScope::of(dir)->open_file(text_of(name));
    if (!file) return give_up(call, file.status());
    *out = *file;
    return DVT_OK;
  });
}

dvt_code dir_has(void*, dvt_dir dir, dvt_str name, uint32_t* yes) noexcept {
  return guarded(nullptr, [&]() -> dvt_code {
    const Folder* folder = dir == 0 ? nullptr : HostScope::of(dir)->folder();
    *yes = folder != nullptr && folder->has(text_of(name)) ? 1 : 0;
    return DVT_OK;
  });
}

dvt_code dir_file(void*, dvt_dir dir, uint64_t i, dvt_str* name) noexcept {
  return guarded(nullptr, [&]() -> dvt_code {
    *name = {};
    if (dir == 0) return DVT_EINVAL;
    const std::vector<std::string>& files = HostScope::of(dir)->files();
    if (i >= files.size()) return DVT_EINVAL;
    *name = abi_text(files[i]);
    return DVT_OK;
  });
}

dvt_code file_name(void*, dvt_file file, dvt_str* out) noexcept {
  if (file == 0) return DVT_EINVAL;
  *out = abi_text(HostScope::file_of(file)->name());
  return DVT_OK;
}

dvt_code file_size(void*, dvt_file file, uint64_t* out) noexcept {
  if (file == 0) return DVT_EINVAL;
  *out = HostScope::file_of(file)->size();
  return DVT_OK;
}

dvt_code file_read(void*, dvt_call* call, dvt_file file, uint64_t offset, void* dst,
                   uint64_t n) noexcept {
  return guarded(call, [&]() -> dvt_code {
    if (file == 0) return give_up(call, DVT_EINVAL, "there is no file to read");
    const Status status = HostScope::file_of(file)->read_at(offset, dst, n);
    return status ? DVT_OK : give_up(call, status);
  });
}

dvt_code file_map(void*, dvt_call* call, dvt_file file, dvt_bytes* out) noexcept {
  return guarded(call, [&]() -> dvt_code {
    if (file == 0) return give_up(call, DVT_EINVAL, "there is no file to map");
    const Result<std::span<const std::byte>> bytes = HostScope::file_of(file)->map();
    if (!bytes) return give_up(call, bytes.status());
    *out = {bytes->data(), bytes->size()};
    return DVT_OK;
  });
}

// ---------------------------------------------------------------- threads

using RangeCallback = void (*)(void* arg, uint64_t begin, uint64_t end, uint32_t lane) noexcept;

dvt_code run_pieces(ThreadPool& pool, dvt_call* call, uint64_t n, uint64_t grain, RangeCallback fn,
                    void* arg) {
  const uint32_t* cancel = call == nullptr ? nullptr : call->cancel;
  const auto cancelled = [cancel] {
    return cancel != nullptr && __atomic_load_n(cancel, __ATOMIC_RELAXED) != 0;
  };
  pool.parallel_for(n, grain, [&](uint64_t begin, uint64_t end, uint32_t lane) {
    if (!cancelled()) fn(arg, begin, end, lane);
  });
  return cancelled() ? give_up(call, DVT_ECANCELLED, "cancelled") : DVT_OK;
}

}  // namespace

dvt_host_v1 HostTable::make(HostServices::Client* client) {
  using Of = HostServices::Client;
  dvt_host_v1 t{};
  t.struct_size = sizeof t;
  t.abi_major = DVT_ABI_MAJOR;
  t.abi_minor = DVT_ABI_MINOR;
  t.self = client;
  t.log = [](void* self, int32_t level, dvt_str area, dvt_str msg) noexcept {
    (void)guarded(nullptr, [&]() -> dvt_code {
      std::string where = static_cast<Of*>(self)->plugin;
      if (area.n > 0) where += (where.empty() ? "" : ": ") + std::string(text_of(area));
      log(static_cast<LogLevel>(level), where, text_of(msg));
      return DVT_OK;
    });
  };
  t.alloc = [](void* self, uint64_t n, uint64_t align, dvt_str tag) noexcept -> void* {
    Of* c = static_cast<Of*>(self);
    void* p = nullptr;
    (void)guarded(nullptr, [&]() -> dvt_code {
      p = c->host->alloc(c->plugin, n, align, text_of(tag));
      return DVT_OK;
    });
    return p;
  };
  t.release = [](void* self, void* p) noexcept {
    Of* c = static_cast<Of*>(self);
    (void)guarded(nullptr, [&]() -> dvt_code {
      c->host->release(c->plugin, p);
      return DVT_OK;
    });
  };
  t.doc_kind = doc_kind;
  t.doc_len = doc_len;
  t.doc_find = doc_find;
  t.doc_at = doc_at;
  t.doc_str = doc_str;
  t.doc_i64 = doc_i64;
  t.doc_f64 = doc_f64;
  t.doc_bool = doc_bool;
  t.doc_where = doc_where;
  t.parse_json = [](void* self, dvt_call* call, dvt_bytes text, dvt_str source,
                    dvt_doc* out) noexcept {
    return guarded(call, [&]() -> dvt_code {
      *out = 0;
      Result<Node> node = core::parse_json({static_cast<const char*>(text.p), text.n},
                                           std::string(text_of(source)));
      if (!node) return give_up(call, node.status());
      *out = static_cast<Of*>(self)->host->add_document(std::move(*node));
      return DVT_OK;
    });
  };
  t.doc_release = [](void* self, dvt_doc root) noexcept {
    static_cast<Of*>(self)->host->release_document(root);
  };
  t.n_lanes = [](void* self) noexcept -> uint32_t {
    return static_cast<Of*>(self)->host->pool().n_lanes();
  };
  t.parallel_for = [](void* self, dvt_call* call, uint64_t n, uint64_t grain, RangeCallback fn,
                      void* arg) noexcept {
    return guarded(call, [&] {
      return run_pieces(static_cast<Of*>(self)->host->pool(), call, n, grain, fn, arg);
    });
  };
  t.team_run = [](void* self, dvt_call* call, ThreadPool::TeamFn fn, void* arg) noexcept {
    return guarded(call, [&]() -> dvt_code {
      static_cast<Of*>(self)->host->pool().team_run(fn, arg);
      return DVT_OK;
    });
  };
  t.team_barrier = [](void* self) noexcept { static_cast<Of*>(self)->host->pool().team_barrier(); };
  t.dir_open = dir_open;
  t.dir_has = dir_has;
  t.dir_file = dir_file;
  t.file_name = file_name;
  t.file_size = file_size;
  t.file_read = file_read;
  t.file_map = file_map;
  t.get_interface = [](void* self, dvt_str name) noexcept {
    return static_cast<Of*>(self)->host->find_interface(text_of(name));
  };
  return t;
}

}  // namespace dovetail::core
