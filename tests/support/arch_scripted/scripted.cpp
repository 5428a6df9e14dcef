// scripted: a test architecture without weights that ignores the prompt and "says" a listed sequence
// of ids: the n-th logits asked for in a sequence are one-hot for script[n] (the last one repeats).
// Options: raw logits per step, a NaN step, a delay per step.
#include <dovetail/arch.hpp>

#include <chrono>
#include <limits>
#include <thread>

namespace dovetail::test_scripted {

// in: tokens [T], positions [1, T], out_rows [R], state of one i32 row; attributes vocab_size, script,
// logits (n_steps x vocab_size or empty), nan_step, delay_us -> [R, V].
dvt_code infer(dvt_call*, const dvt_val*, const dvt_dim* const* in_dims, uint64_t n_in,
               const dvt_attr_in* attrs, uint64_t n_attrs, dvt_val* out,
               dvt_dim (*out_dims)[DVT_MAX_DIMS], uint64_t) noexcept {
  if (n_in != 4 || n_attrs != 5) return DVT_EINVAL;
  out[0].dtype = DVT_F32;
  out[0].ndim = 2;
  out_dims[0][0] = in_dims[2][0];
  out_dims[0][1] = {*static_cast<const int64_t*>(attrs[0].data), 0, 0};
  return DVT_OK;
}

int32_t& asked(const dvt_state_view& s, uint32_t seq, int64_t row) {
  const uint32_t page = s.pages[s.page_off[seq] + row / s.page_len];
  return *reinterpret_cast<int32_t*>(s.base + page * s.page_bytes +
                                     static_cast<uint64_t>(row % s.page_len) * s.row_bytes);
}

dvt_code run(dvt_call*, const dvt_op_args* a) noexcept {
  const auto* rows = static_cast<const int32_t*>(a->in[2].data);
  const int64_t n_rows = a->in[2].ne[0], vocab = a->out[0].ne[1];
  const auto* script = static_cast<const int64_t*>(a->attrs[1].data);
  const auto* raw = static_cast<const double*>(a->attrs[2].data);
  const int64_t n_raw = static_cast<int64_t>(a->attrs[2].n) / vocab;
  const int64_t nan_step = *static_cast<const int64_t*>(a->attrs[3].data);
  const int64_t delay_us = *static_cast<const int64_t*>(a->attrs[4].data);
  const dvt_state_view& state = a->states[0];
  if (delay_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
  for (uint32_t s = 0; s < a->n_seqs; ++s)
    for (uint32_t t = a->tok_off[s]; t < a->tok_off[s + 1]; ++t)
      asked(state, s, a->positions[t]) = 0;
  for (int64_t r = 0; r < n_rows; ++r) {
    uint32_t s = 0;
    while (static_cast<uint32_t>(rows[r]) >= a->tok_off[s + 1]) ++s;
    const int64_t pos = a->positions[rows[r]];
    int64_t step = 0;
    for (int64_t p = 0; p < pos; ++p) step += asked(state, s, p);
    asked(state, s, pos) = 1;
    auto* logits = static_cast<float*>(a->out[0].data) + r * vocab;
    for (int64_t v = 0; v < vocab; ++v)
      logits[v] = step < n_raw ? static_cast<float>(raw[step * vocab + v]) : 0.0f;
    if (step >= n_raw && a->attrs[1].n > 0)
      logits[script[std::min<int64_t>(step, static_cast<int64_t>(a->attrs[1].n) - 1)]] = 30.0f;
    if (step == nan_step)
      for (int64_t v = 0; v < vocab; ++v) logits[v] = std::numeric_limits<float>::quiet_NaN();
  }
  return DVT_OK;
}

constexpr dvt_op_v1 kOp = {sizeof(dvt_op_v1), 1, literal("x.scripted/logits"), infer, run};
constexpr const dvt_op_v1* kOps[] = {&kOp};
constexpr dvt_op_set_v1 kOpSet = {sizeof(dvt_op_set_v1), 1, kOps};

class Scripted {
 public:
  static constexpr std::array params = {
      int_param("vocab_size", "256", "number of ids", 2, 1 << 20),
      int_param("max_position_embeddings", "4096", "longest text in tokens", 1),
      param(DVT_PARAM_INT_LIST, "script", "", "ids to say, in order; the last one repeats"),
      param(DVT_PARAM_FLOAT_LIST, "logits", "",
            "raw logits of the first steps, vocab_size numbers each"),
      int_param("nan_step", "-1", "step whose logits are all NaN; -1 = none"),
      int_param("delay_us", "0", "pause of each step in microseconds", 0)};

  Scripted(ConfigReader& in, Weights&)
      : vocab_size_(in.i64_or("vocab_size", 256)),
        max_seq_len_(in.i64_or("max_position_embeddings", 4096)),
        nan_step_(in.i64_or("nan_step", -1, -1)),
        delay_us_(in.i64_or("delay_us", 0, 0)) {
    const Doc script = in.find("script"), logits = in.find("logits");
    for (uint64_t i = 0; i < script.size(); ++i) {
      script_.push_back(script.at(i).as_int());
      if (script_.back() < 0 || script_.back() >= vocab_size_)
        in.problem(script.at(i), "id " + std::to_string(script_.back()) +
                                     " is outside the vocabulary of " +
                                     std::to_string(vocab_size_));
    }
    for (uint64_t i = 0; i < logits.size(); ++i) logits_.push_back(logits.at(i).as_float());
  }
  ModelInfo info() const { return {1, vocab_size_, max_seq_len_, 1}; }
  std::vector<StateSpec> states() const {
    StateSpec spec;
    spec.name = "asked";
    spec.dtype = DVT_I32;
    spec.dim = {1};
    return {spec};
  }
  Tensor forward(Ops& op, const Step& step) const {
    const dvt_attr_in script{literal("script"), DVT_ATTR_I64, DVT_ATTR_MUST, script_.data(),
                             script_.size()};
    const dvt_attr_in logits{literal("logits"), DVT_ATTR_F64, DVT_ATTR_MUST, logits_.data(),
                             logits_.size()};
    return op.emit("x.scripted/logits",
                   {step.tokens, step.positions, step.logit_rows, op.state("asked")},
                   {Ops::i64("vocab_size", &vocab_size_), script, logits,
                    Ops::i64("nan_step", &nan_step_), Ops::i64("delay_us", &delay_us_)});
  }
  static const dvt_op_set_v1* ops() { return &kOpSet; }

 private:
  int64_t vocab_size_, max_seq_len_, nan_step_, delay_us_;
  std::vector<int64_t> script_;
  std::vector<double> logits_;
};

}  // namespace dovetail::test_scripted
DVT_EXPORT_ARCHITECTURE(dovetail::test_scripted::Scripted, "scripted")
