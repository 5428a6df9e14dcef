#include "core/text/template/chat_template.hpp"

#include <new>
#include <stdexcept>
#include <utility>

#include "core/text/template/interpreter.hpp"
#include "core/text/template/parser.hpp"
#include "core/text/template/source_place.hpp"

namespace dovetail::core {
namespace {

using jinja::Fault;
using jinja::located;
using jinja::Span;

// The template's own text at `at`, on one line and short.
std::string excerpt(const std::string& source, Span at) {
  constexpr size_t kShown = 60;
  std::string out;
  for (size_t i = at.begin; i < at.end && i < source.size(); ++i) {
    const bool is_blank = source[i] == '\n' || source[i] == '\t' || source[i] == ' ';
    if (!is_blank) {
      out += source[i];
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  if (out.size() <= kShown) return out;
  size_t end = kShown;
  while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xC0) == 0x80) --end;
  return out.substr(0, end) + "...";
}

}  // namespace

std::vector<std::string> special_token_names() {
  return {"bos_token", "eos_token", "unk_token",  "pad_token",
          "sep_token", "cls_token", "mask_token", "additional_special_tokens"};
}

struct ChatTemplate::Parsed {
  std::string name;
  std::string source;  // normalized: spans point into it
  jinja::Program program;
};

Result<ChatTemplate> ChatTemplate::parse(const std::string& source, std::string name) {
  auto parsed = std::make_shared<Parsed>();
  parsed->name = std::move(name);
  DVT_TRY(parsed->source, jinja::prepare_source(source, parsed->name));
  Span at;
  try {
    parsed->program = jinja::parse_program(parsed->source, at);
  } catch (const Fault& fault) {
    return {fault.code(), located(parsed->name, parsed->source, at, fault.message())};
  } catch (const std::bad_alloc&) {
    return {Code::kNoMemory, parsed->name + ": not enough memory to parse the template"};
  }
  return ChatTemplate(std::move(parsed));
}

Result<Rendered> ChatTemplate::render(const Node& context, const RenderOptions& options) const {
  const std::string& name = parsed_->name;
  if (!context.is_map()) {
    return invalid(name + ": the template's context is " + context.kind_name() +
                   ", expected a map");
  }
  jinja::Interpreter interpreter(parsed_->program, context, options);
  try {
    jinja::SourcedText text = interpreter.run();
    std::vector<TextRange> data_ranges = text.take_data_ranges();
    return Rendered{text.take_bytes(), std::move(data_ranges)};
  } catch (const Fault& fault) {
    if (fault.kind() == Fault::Kind::kRaised) return {fault.code(), fault.message()};
    const std::string where = excerpt(parsed_->source, interpreter.where());
    return {fault.code(), located(name, parsed_->source, interpreter.where(), fault.message()) +
                              (where.empty() ? "" : ", in `" + where + "`")};
  } catch (const std::bad_alloc&) {
    return {Code::kNoMemory, name + ": not enough memory to render the template"};
  } catch (const std::length_error&) {
    return {Code::kNoMemory, name + ": a value of the template outgrows the memory"};
  }
}

const std::string& ChatTemplate::source() const {
  return parsed_->source;
}

}  // namespace dovetail::core
