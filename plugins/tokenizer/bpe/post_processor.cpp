#include "post_processor.hpp"

#include <algorithm>

#include "error.hpp"
#include "vocabulary.hpp"

namespace dovetail::bpe {
namespace {

using Kind = TemplateItem::Kind;
using Template = std::vector<TemplateItem>;

constexpr int kMaxDepth = 16;

uint32_t read_number(const JsonView& value, const std::string& path, const char* expected) {
  if (value.kind() != JsonKind::kInt || value.as_int() < 0 || value.as_int() >= kMaxIds) {
    value.refuse(path, "", expected);
  }
  return static_cast<uint32_t>(value.as_int());
}
uint32_t read_id(const JsonView& value, const std::string& path) {
  return read_number(value, path, "an id of 0 to 9999999");
}
uint32_t read_type(const JsonView& item, const std::string& path) {
  const JsonView type = item.find("type_id");
  return type.is_null() ? 0 : read_number(type, path + ".type_id", "a type of 0 to 9999999");
}

// The ids of one special token; one name may stand for several.
void append_special(const JsonView& section, const JsonView& item, const std::string& at,
                    const std::string& path, Template* out) {
  const std::string name(item.get_string("id", at));
  const std::string token_path = path + ".special_tokens." + name;
  const JsonView ids = section.find("special_tokens").find(name).get_list("ids", token_path);
  for (uint64_t i = 0; i < ids.len(); ++i) {
    out->push_back({Kind::kToken, read_type(item, at), read_id(ids.at(i), token_path + ".ids")});
  }
}

Template read_template(const JsonView& section, const char* key, const std::string& path) {
  Template out;
  const JsonView list = section.get_list(key, path);
  for (uint64_t i = 0; i < list.len(); ++i) {
    const std::string at = path + "." + key + "[" + std::to_string(i) + "]";
    const JsonView sequence = list.at(i).find("Sequence");
    if (sequence.is_null()) {
      append_special(section, list.at(i).find("SpecialToken"), at + ".SpecialToken", path, &out);
      continue;
    }
    const std::string_view name = sequence.get_string("id", at + ".Sequence");
    if (name != "A" && name != "B") {
      fail_format(at + ".Sequence.id is " + quote(name) + ", expected A or B");
    }
    out.push_back({name == "A" ? Kind::kText : Kind::kPair, read_type(sequence, at + ".Sequence")});
  }
  return out;
}

void check_texts(const Template& t, int64_t n_pairs, const std::string& path) {
  const auto count = [&](Kind kind) {
    return std::count_if(t.begin(), t.end(), [&](auto& item) { return item.kind == kind; });
  };
  if (count(Kind::kText) == 1 && count(Kind::kPair) == n_pairs) return;
  fail_unsupported(path + ": a template needs sequence A exactly once" +
                   (n_pairs > 0 ? ", and sequence B exactly once" : " and no sequence B"));
}

// One layer around what earlier processors made.
Template nested(const Template& outer, const Template& inner) {
  Template out;
  for (const TemplateItem& item : outer) {
    if (item.kind != Kind::kText) {
      out.push_back(item);
    } else {
      out.insert(out.end(), inner.begin(), inner.end());
    }
  }
  return out;
}

void read_bert_like(const JsonView& section, const std::string& path, bool is_roberta,
                    PostProcessor* p) {
  const auto id_of = [&](const char* key) {
    const JsonView pair = section.get_list(key, path);
    if (pair.len() != 2) pair.refuse(path, key, "[content, id]");
    return read_id(pair.at(1), path + "." + key);
  };
  const uint32_t second = is_roberta ? 0 : 1;  // type of what belongs to the second text
  const TemplateItem cls{Kind::kToken, 0, id_of("cls")}, sep{Kind::kToken, 0, id_of("sep")};
  p->single = nested({cls, {Kind::kText, 0}, sep}, p->single);
  p->pair = {cls, {Kind::kText, 0}, sep};
  if (is_roberta) p->pair.push_back(sep);
  p->pair.push_back({Kind::kPair, second});
  p->pair.push_back({Kind::kToken, second, sep.id});
}

void read_section(const JsonView& section, const std::string& path, int depth, PostProcessor* p) {
  if (section.is_null()) return;
  if (depth > kMaxDepth) fail_format(path + " is nested too deep");
  const std::string_view type = section.get_string("type", path);
  if (type == "ByteLevel") return;
  if (type == "TemplateProcessing") {
    const Template single = read_template(section, "single", path);
    check_texts(single, 0, path + ".single");
    p->single = nested(single, p->single);
    if (section.find("pair").is_null()) return;
    p->pair = read_template(section, "pair", path);
    check_texts(p->pair, 1, path + ".pair");
    return;
  }
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    return read_bert_like(section, path, type == "RobertaProcessing", p);
  }
  if (type == "Sequence") {
    const JsonView list = section.get_list("processors", path);
    for (uint64_t i = 0; i < list.len(); ++i) {
      read_section(list.at(i), path + ".processors[" + std::to_string(i) + "]", depth + 1, p);
    }
    return;
  }
  fail_unsupported(
      path + ".type is " + quote(type) +
      ", which is not supported (supported: ByteLevel, TemplateProcessing, BertProcessing, "
      "RobertaProcessing, Sequence)");
}

}  // namespace

PostProcessor PostProcessor::from_json(const JsonView& section, const std::string& path) {
  PostProcessor p;
  p.single = {{Kind::kText, 0}};
  p.pair = {{Kind::kText, 0}, {Kind::kPair, 1}};
  read_section(section, path, 0, &p);
  bool seen_text = false;
  for (const TemplateItem& item : p.single) {
    if (item.kind == Kind::kText) {
      seen_text = true;
    } else {
      (seen_text ? p.after : p.before).push_back(item.id);
    }
  }
  return p;
}

}  // namespace dovetail::bpe
