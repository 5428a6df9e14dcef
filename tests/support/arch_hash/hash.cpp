// hash: a test architecture without weights whose next logits are a fixed function of all earlier ids
// and positions. Each token writes mix(id, position) into a paged slot; the logits of a row fold over
// all cached rows up to it. Any fault of cache, batching, chunking or rewind changes what follows.
#include <dovetail/arch.hpp>

namespace dovetail::test_hash {

uint64_t mix(uint64_t a, uint64_t b) {  // splitmix64 of the two
  uint64_t z = a * 0x9e3779b97f4a7c15ull + b + 0x2545f4914f6cdd1dull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// in: tokens [T], positions [1, T], out_rows [R], state of one i64 row; attribute vocab_size -> [R, V].
dvt_code infer(dvt_call*, const dvt_val*, const dvt_dim* const* in_dims, uint64_t n_in,
               const dvt_attr_in* attrs, uint64_t n_attrs, dvt_val* out,
               dvt_dim (*out_dims)[DVT_MAX_DIMS], uint64_t) noexcept {
  if (n_in != 4 || n_attrs != 1) return DVT_EINVAL;
  out[0].dtype = DVT_F32;
  out[0].ndim = 2;
  out_dims[0][0] = in_dims[2][0];
  out_dims[0][1] = {*static_cast<const int64_t*>(attrs[0].data), 0, 0};
  return DVT_OK;
}

uint64_t* row_at(const dvt_state_view& s, uint32_t seq, int64_t row) {
  const uint32_t page = s.pages[s.page_off[seq] + row / s.page_len];
  return reinterpret_cast<uint64_t*>(s.base + page * s.page_bytes +
                                     static_cast<uint64_t>(row % s.page_len) * s.row_bytes);
}

dvt_code run(dvt_call*, const dvt_op_args* a) noexcept {
  const auto* tokens = static_cast<const int32_t*>(a->in[0].data);
  const auto* rows = static_cast<const int32_t*>(a->in[2].data);
  const int64_t n_rows = a->in[2].ne[0], vocab = a->out[0].ne[1];
  const dvt_state_view& state = a->states[0];
  for (uint32_t s = 0; s < a->n_seqs; ++s)
    for (uint32_t t = a->tok_off[s]; t < a->tok_off[s + 1]; ++t)
      *row_at(state, s, a->positions[t]) =
          mix(static_cast<uint64_t>(tokens[t]), static_cast<uint64_t>(a->positions[t]));
  for (int64_t r = 0; r < n_rows; ++r) {
    uint32_t s = 0;
    while (static_cast<uint32_t>(rows[r]) >= a->tok_off[s + 1]) ++s;
    uint64_t fold = 0;
    for (int64_t p = 0; p <= a->positions[rows[r]]; ++p) fold = mix(fold, *row_at(state, s, p));
    auto* logits = static_cast<float*>(a->out[0].data) + r * vocab;
    for (int64_t v = 0; v < vocab; ++v)  // 20 bits, so that ties are rare and floats exact
      logits[v] = static_cast<float>(mix(fold, static_cast<uint64_t>(v)) >> 44) / 131072.0f;
  }
  return DVT_OK;
}

constexpr dvt_op_v1 kOp = {sizeof(dvt_op_v1), 1, literal("x.hash/logits"), infer, run};
constexpr const dvt_op_v1* kOps[] = {&kOp};
constexpr dvt_op_set_v1 kOpSet = {sizeof(dvt_op_set_v1), 1, kOps};

class Hash {
 public:
  static constexpr std::array params = {
      int_param("vocab_size", "64", "number of ids", 2, 1 << 20),
      int_param("max_position_embeddings", "4096", "longest text in tokens", 1)};
  Hash(ConfigReader& in, Weights&)
      : vocab_size_(in.i64_or("vocab_size", 64)),
        max_seq_len_(in.i64_or("max_position_embeddings", 4096)) {}
  ModelInfo info() const { return {1, vocab_size_, max_seq_len_, 1}; }
  std::vector<StateSpec> states() const {
    StateSpec spec;
    spec.name = "history";
    spec.dtype = DVT_I64;
    spec.dim = {1};
    return {spec};
  }
  Tensor forward(Ops& op, const Step& step) const {
    return op.emit("x.hash/logits",
                   {step.tokens, step.positions, step.logit_rows, op.state("history")},
                   {Ops::i64("vocab_size", &vocab_size_)});
  }
  static const dvt_op_set_v1* ops() { return &kOpSet; }

 private:
  int64_t vocab_size_, max_seq_len_;
};

}  // namespace dovetail::test_hash
DVT_EXPORT_ARCHITECTURE(dovetail::test_hash::Hash, "hash")
