// How often the CPU backend's lanes meet in a step: the cost of a step beside its bytes.
#include <gtest/gtest.h>

#include <dovetail/host_program.hpp>

#include "core/plugin/host.hpp"
#include "plugins/backend/cpu/ops.hpp"
#include "plugins/backend/cpu/products.hpp"
#include "tests/contract/small_model.hpp"

namespace dovetail {
namespace {

// Of a decoder of this many layers; the program is compiled, not run.
size_t meetings(uint32_t n_lanes, bool few) {
  core::ThreadPool pool(n_lanes);
  core::HostServices services(pool);
  const core::OpRegistry ops;
  const core::test::SmallModel model;
  const core::Graph graph = model.graph(ops);
  std::map<std::string, HostWeight, std::less<>> weights;
  for (const auto& [name, w] : model.weights())
    weights[name] = {w.values.data(), w.values.size() * sizeof(float), DVT_F32};
  dvt_compile_options options{};
  options.struct_size = sizeof options;
  options.max_tokens = 64;
  options.max_rows = options.max_seqs = 4;
  const dvt_graph view = graph.view();
  const HostProgram program(services.table_for("test"),
                            cpu::with_products_first(cpu::with_residuals(GraphCopy(view), options)),
                            options, cpu::find_op, weights, nullptr, /*parallel=*/true, nullptr);
  return program.n_meetings(few);
}

TEST(Meetings, AreSixALayerWhenTokensAreFew) {
  // Beside the layers: after the rope tables, and around the embedding, the chosen rows and the head.
  constexpr size_t kLayers = core::test::SmallModel::kLayers, kAround = 4;
  EXPECT_LE(meetings(2, true), 6 * kLayers + kAround);
  EXPECT_LE(meetings(3, true), 10 * kLayers + kAround) << "3 lanes cannot own 2 kv heads";
  EXPECT_EQ(meetings(1, true), 0u);
}

}  // namespace
}  // namespace dovetail
