// Write a compute backend: a class with the slots of dvt_backend_v1 as methods, exported in one line.
// host_program.hpp holds what backends in host memory share.
#pragma once

#include <dovetail/abi/backend.h>
#include <dovetail/abi/op.h>
#include <dovetail/graph_view.hpp>
#include <dovetail/plugin.hpp>
#include <dovetail/records.hpp>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace dovetail {

struct BackendOpen {
  Host host;
  uint32_t device;
  Doc options;  // the YAML's parameters, validated
};

struct StateAlloc {
  std::span<const dvt_state_spec> specs;
  uint32_t kv_dtype, page_len, n_pages, n_slots;
};
struct StateEstimate {
  uint64_t bytes_per_page = 0, bytes_per_slot = 0, workspace = 0;
};

/// The class T needs:
///   static std::vector<dvt_device> devices(const Host&)
///   explicit T(const BackendOpen&)
///   dvt_backend_info info() const
///   dvt_verdict supports(const GraphView&, const dvt_node&) const
///   dvt_weight_plan plan(const dvt_weight_use&) const                 group is filled by the caller with i
///   void pack(std::span<const dvt_weight_use>, std::span<const dvt_bytes> sources, void* dst, uint64_t bytes, Call) const
///   void bind(std::span<const dvt_weight_use>, const dvt_weight_plan&, const void* p)
///   void alloc_states(const StateAlloc&);  StateEstimate estimate(const dvt_graph*, const dvt_compile_options&, uint32_t kv_dtype, uint32_t page_len) const
///   std::unique_ptr<T::Program> compile(const dvt_graph*, const dvt_compile_options&)
///   T::Program: uint64_t submit(Call, const dvt_batch&, std::span<const dvt_output>, const dvt_sampling*); void wait(Call, uint64_t ticket)
///   std::vector<dvt_mem_row> mem() const
///   void export_state(const dvt_chunk&); void import_state(const dvt_chunk&); void copy_pages(group, src, dst, n); void reset_slot(slot)
///   double read_bandwidth(const void* p, uint64_t bytes, Call)        seconds
template <class T>
struct BackendTable {
  using Program = typename T::Program;
  static T& self(void* ctx) { return *static_cast<T*>(ctx); }
  static Program& program(void* exe) { return *static_cast<Program*>(exe); }

  static dvt_code devices(void* plugin, dvt_call* call, dvt_device* out, uint64_t cap,
                          uint64_t* need) noexcept {
    return guard(call, [&] {
      give(std::span<const dvt_device>(T::devices(host_of(plugin))), out, cap, need);
    });
  }
  static dvt_code open(void* plugin, dvt_call* call, uint32_t device, dvt_doc options,
                       void** ctx) noexcept {
    return guard(call, [&] {
      // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): guard() catches it
      *ctx = new T(BackendOpen{host_of(plugin), device, host_of(plugin).doc(options)});
    });
  }
  static void close(void* ctx) noexcept { delete &self(ctx); }
  static dvt_code info(void* ctx, dvt_call* call, dvt_backend_info* out) noexcept {
    return guard(call, [&] { *out = self(ctx).info(); });
  }
  static dvt_code supports(void* ctx, dvt_call* call, const dvt_graph* graph,
                           dvt_verdict* per_node) noexcept {
    return guard(call, [&] {
      const GraphView g(graph);
      for (uint64_t i = 0; i < g.n_nodes(); ++i) per_node[i] = self(ctx).supports(g, g.node(i));
    });
  }
  static dvt_code plan(void* ctx, dvt_call* call, const dvt_weight_use* uses, dvt_weight_plan* out,
                       uint64_t n) noexcept {
    return guard(call, [&] {
      const std::vector<dvt_weight_use> known = read_records(uses, n);
      for (uint64_t i = 0; i < n; ++i) {
        dvt_weight_plan plan = self(ctx).plan(known[i]);
        plan.group = static_cast<uint32_t>(i);
        write_record(out, i, plan);
      }
    });
  }
  static dvt_code pack(void* ctx, dvt_call* call, const dvt_weight_use* uses,
                       const dvt_bytes* sources, uint64_t n, void* dst, uint64_t bytes) noexcept {
    return guard(call, [&] {
      self(ctx).pack(read_records(uses, n), {sources, static_cast<size_t>(n)}, dst, bytes,
                     Call(call));
    });
  }
  static dvt_code bind(void* ctx, dvt_call* call, const dvt_weight_use* uses, uint64_t n,
                       const dvt_weight_plan* plan, const void* p) noexcept {
    return guard(call,
                 [&] { self(ctx).bind(read_records(uses, n), read_records(plan, 1).front(), p); });
  }
  static dvt_code alloc_states(void* ctx, dvt_call* call, const dvt_state_spec* specs, uint64_t n,
                               uint32_t kv_dtype, uint32_t page_len, uint32_t n_pages,
                               uint32_t n_slots) noexcept {
    return guard(call, [&] {
      self(ctx).alloc_states(
          {{specs, static_cast<size_t>(n)}, kv_dtype, page_len, n_pages, n_slots});
    });
  }
  static dvt_code estimate(void* ctx, dvt_call* call, const dvt_graph* graph,
                           const dvt_compile_options* options, uint32_t kv_dtype, uint32_t page_len,
                           uint64_t* per_page, uint64_t* per_slot, uint64_t* workspace) noexcept {
    return guard(call, [&] {
      const StateEstimate e = self(ctx).estimate(graph, *options, kv_dtype, page_len);
      *per_page = e.bytes_per_page;
      *per_slot = e.bytes_per_slot;
      *workspace = e.workspace;
    });
  }
  static dvt_code compile(void* ctx, dvt_call* call, const dvt_graph* graph,
                          const dvt_compile_options* options, void** exe) noexcept {
    return guard(call, [&] { *exe = self(ctx).compile(graph, *options).release(); });
  }
  static void drop(void* exe) noexcept { delete &program(exe); }
  static dvt_code submit(void* exe, dvt_call* call, const dvt_batch* batch, const dvt_output* outs,
                         uint64_t n_outs, const dvt_sampling* sampling, uint64_t* ticket) noexcept {
    return guard(call, [&] {
      *ticket =
          program(exe).submit(Call(call), *batch, {outs, static_cast<size_t>(n_outs)}, sampling);
    });
  }
  static dvt_code wait(void* exe, dvt_call* call, uint64_t ticket) noexcept {
    return guard(call, [&] { program(exe).wait(Call(call), ticket); });
  }
  static dvt_code mem(void* ctx, dvt_call* call, dvt_mem_row* out, uint64_t cap,
                      uint64_t* need) noexcept {
    return guard(call,
                 [&] { give(std::span<const dvt_mem_row>(self(ctx).mem()), out, cap, need); });
  }
  static dvt_code export_state(void* ctx, dvt_call* call, const dvt_chunk* chunk) noexcept {
    return guard(call, [&] { self(ctx).export_state(*chunk); });
  }
  static dvt_code import_state(void* ctx, dvt_call* call, const dvt_chunk* chunk) noexcept {
    return guard(call, [&] { self(ctx).import_state(*chunk); });
  }
  static dvt_code copy_pages(void* ctx, dvt_call* call, uint32_t group, const uint32_t* src,
                             const uint32_t* dst, uint64_t n) noexcept {
    return guard(call, [&] { self(ctx).copy_pages(group, src, dst, n); });
  }
  static dvt_code reset_slot(void* ctx, dvt_call* call, uint32_t slot) noexcept {
    return guard(call, [&] { self(ctx).reset_slot(slot); });
  }
  static dvt_code read_bandwidth(void* ctx, dvt_call* call, const void* p, uint64_t bytes,
                                 double* seconds) noexcept {
    return guard(call, [&] { *seconds = self(ctx).read_bandwidth(p, bytes, Call(call)); });
  }

  static constexpr dvt_backend_v1 table = {sizeof(dvt_backend_v1),
                                           0,
                                           devices,
                                           open,
                                           close,
                                           info,
                                           supports,
                                           plan,
                                           pack,
                                           bind,
                                           /*put=*/nullptr,
                                           alloc_states,
                                           estimate,
                                           compile,
                                           drop,
                                           submit,
                                           wait,
                                           mem,
                                           export_state,
                                           import_state,
                                           copy_pages,
                                           /*snapshot=*/nullptr,
                                           /*restore=*/nullptr,
                                           reset_slot,
                                           read_bandwidth};
  static const void* find(std::string_view name) {
    return name == "dovetail.backend/1" ? &table : nullptr;
  }
};

}  // namespace dovetail

/// Keys: the device kinds, e.g. "cpu".
#define DVT_EXPORT_BACKEND(Class, ...)                                \
  DVT_DEFINE_PLUGIN("backend", ("dovetail.backend/1"), (__VA_ARGS__), \
                    ::dovetail::BackendTable<Class>::find, ::dovetail::params_of<Class>())
