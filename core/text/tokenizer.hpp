// Tokenizer: an opened tokenizer plugin, as the core uses it.
#pragma once

#include <dovetail/abi/tokenizer.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/node.hpp"
#include "core/base/status.hpp"
#include "core/text/detokenizer.hpp"

namespace dovetail::core {

class Tokenizer {
 public:
  /// `definition` is tokenizer.json's tree and outlives this; `dir` is the folder for further files;
  /// `options` are the checked YAML parameters.
  static Result<std::unique_ptr<Tokenizer>> open(const dvt_tokenizer_v1* table, void* plugin,
                                                 const Node& definition, dvt_dir dir, Node options);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// Ids that it can give or decode are below this.
  uint32_t n_ids() const { return info_.n_ids; }
  uint32_t n_added() const { return info_.n_added; }
  /// Tokens of a text; in the `literal` ranges added tokens are plain text. flags: DVT_ENC_*.
  Result<std::vector<dvt_tok>> encode(std::string_view text, std::span<const dvt_range> literal,
                                      uint32_t flags) const;
  Result<std::string> decode(std::span<const uint32_t> ids, uint32_t flags) const;
  /// The raw bytes of one token, maybe half a character; *flags are DVT_PIECE_*.
  Result<std::string> piece(uint32_t id, uint32_t* flags = nullptr) const;
  /// The id whose content is exactly this, or a Status.
  Result<uint32_t> find(std::string_view content) const;
  /// `shown` are special tokens whose text is given out all the same.
  Result<std::unique_ptr<Detokenizer>> stream(uint32_t flags = DVT_DEC_SKIP_SPECIAL,
                                              std::span<const uint32_t> shown = {}) const;

 private:
  Tokenizer(const dvt_tokenizer_v1* table, void* object, Node options);

  const dvt_tokenizer_v1* table_;
  void* object_;
  Node options_;
  dvt_tokenizer_info info_{};
};

}  // namespace dovetail::core
