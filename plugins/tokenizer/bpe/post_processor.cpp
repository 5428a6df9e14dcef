#include "post_processor.hpp"

#include "error.hpp"
#include "vocabulary.hpp"

namespace dovetail::bpe {
namespace {

constexpr int kMaxDepth = 16;

uint32_t read_id(const JsonView& value, const std::string& path) {
  if (value.kind() != JsonKind::kInt || value.as_int() < 0 || value.as_int() >= kMaxIds) {
    value.refuse(path, "", "an id of 0 to 9999999");
  }
  return static_cast<uint32_t>(value.as_int());
}

// One layer around what earlier processors made.
void wrap(const std::vector<uint32_t>& before, const std::vector<uint32_t>& after,
          PostProcessor* p) {
  p->before.insert(p->before.begin(), before.begin(), before.end());
  p->after.insert(p->after.end(), after.begin(), after.end());
}

void read_template(const JsonView& section, const std::string& path, PostProcessor* p) {
  std::vector<uint32_t> before, after;
  bool seen_text = false;
  const JsonView single = section.get_list("single", path);
  for (uint64_t i = 0; i < single.len(); ++i) {
    const std::string at = path + ".single[" + std::to_string(i) + "]";
    const JsonView sequence = single.at(i).find("Sequence");
    if (!sequence.is_null()) {
      if (sequence.get_string("id", at + ".Sequence") != "A" || seen_text) {
        fail_unsupported(at + ": a template for one text needs sequence A exactly once");
      }
      seen_text = true;
      continue;
    }
    const std::string name(
        single.at(i).find("SpecialToken").get_string("id", at + ".SpecialToken"));
    const JsonView token = section.find("special_tokens").find(name);
    const std::string token_path = path + ".special_tokens." + name;
    const JsonView ids = token.get_list("ids", token_path);
    for (uint64_t k = 0; k < ids.len(); ++k) {
      (seen_text ? after : before).push_back(read_id(ids.at(k), token_path + ".ids"));
    }
  }
  if (!seen_text) fail_unsupported(path + ".single does not hold sequence A");
  wrap(before, after, p);
}

void read_section(const JsonView& section, const std::string& path, int depth, PostProcessor* p) {
  if (section.is_null()) return;
  if (depth > kMaxDepth) fail_format(path + " is nested too deep");
  const std::string_view type = section.get_string("type", path);
  if (type == "ByteLevel") return;
  if (type == "TemplateProcessing") return read_template(section, path, p);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    const auto id_of = [&](const char* key) {
      const JsonView pair = section.get_list(key, path);
      if (pair.len() != 2) pair.refuse(path, key, "[content, id]");
      return read_id(pair.at(1), path + "." + key);
    };
    return wrap({id_of("cls")}, {id_of("sep")}, p);
  }
  if (type == "Sequence") {
    const JsonView list = section.get_list("processors", path);
    for (uint64_t i = 0; i < list.len(); ++i) {
      read_section(list.at(i), path + ".processors[" + std::to_string(i) + "]", depth + 1, p);
    }
    return;
  }
  fail_unsupported(
      path + ".type is \"" + std::string(type) +
      "\", which is not supported (supported: ByteLevel, TemplateProcessing, BertProcessing, "
      "RobertaProcessing, Sequence)");
}

}  // namespace

PostProcessor PostProcessor::from_json(const JsonView& section, const std::string& path) {
  PostProcessor p;
  read_section(section, path, 0, &p);
  return p;
}

}  // namespace dovetail::bpe
