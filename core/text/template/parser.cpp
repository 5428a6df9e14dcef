// The statements; expression_parser.cpp has what stands inside them.
#include "core/text/template/parser.hpp"

#include <algorithm>
#include <initializer_list>

#include "core/text/template/expression_parser.hpp"

namespace dovetail::core::jinja {
namespace {

constexpr int kMaxNesting = 100;  // statements inside each other

using Type = Token::Type;

class Parser {
 public:
  /// With `missing` what is missing goes there, instead of being a fault.
  Parser(std::string_view source, Span& at, std::vector<MissingTag>* missing)
      : at_(at), tokens_(tokenize(source, at), at), expressions_(tokens_), missing_(missing) {}

  Program run() {
    Program program;
    program.loop = expressions_.intern("loop");
    program.caller = caller_ = expressions_.intern("caller");
    program.varargs = varargs_ = expressions_.intern("varargs");
    program.kwargs = kwargs_ = expressions_.intern("kwargs");
    program.body = parse_block({});
    if (missing_ == nullptr) expressions_.fail_on_unknown(at_);
    program.names = expressions_.take_names();
    return program;
  }

 private:
  // Statements up to one of the tags `ends`, whose name is left as the current token; with no `ends`
  // up to the end of the template.
  Block parse_block(std::initializer_list<std::string_view> ends) {
    const Span opened = tokens_.previous().span;
    Block block;
    while (!tokens_.is(Type::kEnd)) {
      switch (tokens_.current().type) {
        case Type::kData: {
          auto text = std::make_unique<Text>(StatementKind::kText, tokens_.current().span);
          text->bytes = tokens_.take().text;
          block.push_back(std::move(text));
          break;
        }
        case Type::kPrintBegin:
          tokens_.take();
          block.push_back(parse_print(Type::kPrintEnd, "the end of the print tag"));
          break;
        default:
          tokens_.expect(Type::kBlockBegin, "a tag");
          if (std::any_of(ends.begin(), ends.end(),
                          [&](std::string_view end) { return tokens_.is_name(end); })) {
            return block;
          }
          block.push_back(parse_statement());
      }
    }
    if (ends.size() != 0) {
      at_ = opened;
      fail_syntax("the template ends inside a block that needs {% " +
                  std::string(*(ends.end() - 1)) + " %}");
    }
    return block;
  }

  StatementPtr parse_print(Type end, const char* end_text) {
    auto print = std::make_unique<Print>(StatementKind::kPrint, tokens_.current().span);
    print->value = expressions_.parse_tuple();
    tokens_.expect(end, end_text);
    return print;
  }

  StatementPtr parse_statement() {
    if (++nesting_ > kMaxNesting) {
      fail_syntax("blocks are nested deeper than " + std::to_string(kMaxNesting) + " levels");
    }
    const Span span = tokens_.current().span;
    const std::string tag = tokens_.expect(Type::kName, "the name of a tag").text;
    StatementPtr statement = parse_tag(tag, span);
    --nesting_;
    return statement;
  }

  StatementPtr parse_tag(const std::string& tag, Span span) {
    if (tag == "if") return parse_if(span);
    if (tag == "for") return parse_for(span);
    if (tag == "set") return parse_set(span);
    if (tag == "macro") return parse_macro(span);
    if (tag == "call") return parse_call(span);
    if (tag == "filter") return parse_filter(span);
    if (tag == "with") return parse_with(span);
    if (tag == "generation") return parse_generation(span);
    if (tag == "print") return parse_print(Type::kBlockEnd, kTagEnd);
    if (tag == "break" || tag == "continue") return parse_jump(tag, span);
    at_ = span;
    const Fault fault = missing_tag(tag);
    if (missing_ == nullptr || is_end_tag(tag)) throw fault;
    return skip_tag(tag, span, fault);
  }

  static Fault missing_tag(const std::string& tag) {
    for (const char* other :
         {"include", "import", "from", "extends", "block", "autoescape", "do", "trans", "debug"}) {
      if (tag == other)
        return {Code::kUnsupported, "the tag '" + tag + "' is not supported in chat templates"};
    }
    return {Code::kFormat, "unknown tag '" + tag + "'"};
  }

  // Of the tags that are known here: they end nothing where they stand.
  static bool is_end_tag(const std::string& tag) {
    for (const char* end : {"elif", "else", "endif", "endfor", "endset", "endmacro", "endcall",
                            "endfilter", "endwith", "endgeneration", "endraw"}) {
      if (tag == end) return true;
    }
    return false;
  }

  // The tag is noted and left out, what stands inside its block is read as if it stood alone.
  StatementPtr skip_tag(const std::string& tag, Span span, const Fault& fault) {
    const bool ends_a_missing_one =
        tag == "pluralize" ||
        std::any_of(missing_->begin(), missing_->end(),
                    [&](const MissingTag& other) { return tag == "end" + other.name; });
    if (!ends_a_missing_one) missing_->push_back({tag, span, fault});
    while (!tokens_.is(Type::kBlockEnd) && !tokens_.is(Type::kEnd)) tokens_.take();
    end_tag();
    return std::make_unique<Text>(StatementKind::kText, span);
  }

  static constexpr const char* kTagEnd = "the end of the tag";
  void end_tag() { tokens_.expect(Type::kBlockEnd, kTagEnd); }

  StatementPtr parse_if(Span span) {
    const size_t n_unknown = expressions_.n_unknown();
    auto node = std::make_unique<If>(StatementKind::kIf, span);
    while (true) {
      ExprPtr condition = expressions_.parse_tuple(false);
      end_tag();
      node->branches.emplace_back(std::move(condition), parse_block({"elif", "else", "endif"}));
      if (!tokens_.skip_name("elif")) break;
    }
    if (tokens_.skip_name("else")) {
      end_tag();
      node->otherwise = parse_block({"endif"});
    }
    tokens_.expect_name("endif");
    end_tag();
    expressions_.drop_unknown(n_unknown);
    return node;
  }

  StatementPtr parse_for(Span span) {
    auto node = std::make_unique<For>(StatementKind::kFor, span);
    node->target = parse_target();
    tokens_.expect_name("in");
    node->iterable = expressions_.parse_tuple(false);
    if (tokens_.skip_name("if")) node->condition = expressions_.parse_expression();
    node->is_recursive = tokens_.skip_name("recursive");
    end_tag();
    ++loops_;
    node->body = parse_block({"else", "endfor"});
    --loops_;
    if (tokens_.skip_name("else")) {
      end_tag();
      node->otherwise = parse_block({"endfor"});
    }
    tokens_.expect_name("endfor");
    end_tag();
    return node;
  }

  StatementPtr parse_set(Span span) {
    Target target = parse_target(true);
    if (tokens_.skip_op("=")) {
      auto node = std::make_unique<Set>(StatementKind::kSet, span);
      node->target = std::move(target);
      node->value = expressions_.parse_tuple();
      end_tag();
      return node;
    }
    auto node = std::make_unique<SetBlock>(StatementKind::kSetBlock, span);
    if (target.kind == Target::Kind::kTuple) tokens_.fail_expected("'='");
    node->target = std::move(target);
    if (tokens_.skip_op("|")) node->filter = expressions_.parse_block_filters();
    end_tag();
    node->body = parse_block({"endset"});
    tokens_.take();
    end_tag();
    return node;
  }

  StatementPtr parse_macro(Span span) {
    auto node = std::make_unique<Macro>(StatementKind::kMacro, span);
    const std::string name = tokens_.expect(Type::kName, "the macro's name").text;
    node->name = assignable(name);
    node->code.name = name;
    parse_parameters(node->code);
    end_tag();
    parse_code(node->code, "endmacro");
    if (tokens_.is(Type::kName) && tokens_.current().text != name) {
      tokens_.fail_expected(in_quotes(name) + ", the macro's name, or the end of the tag");
    }
    tokens_.skip_name(name);
    end_tag();
    return node;
  }

  StatementPtr parse_call(Span span) {
    auto node = std::make_unique<CallBlock>(StatementKind::kCallBlock, span);
    node->code.name = "caller";
    if (tokens_.is_op("(")) parse_parameters(node->code);
    node->call = expressions_.parse_call_expression();
    end_tag();
    parse_code(node->code, "endcall");
    end_tag();
    return node;
  }

  void parse_parameters(MacroCode& code) {
    tokens_.expect_op("(");
    while (!tokens_.is_op(")")) {
      if (!code.parameters.empty()) tokens_.expect_op(",");
      if (tokens_.is_op(")")) break;
      const std::string name = tokens_.expect(Type::kName, "a parameter's name").text;
      MacroCode::Parameter parameter{assignable(name), name, nullptr};
      if (tokens_.skip_op("=")) {
        parameter.fallback = expressions_.parse_expression();
      } else if (!code.parameters.empty() && code.parameters.back().fallback != nullptr) {
        fail_syntax("the parameter '" + name +
                    "' without a default follows one that has a default");
      }
      code.parameters.push_back(std::move(parameter));
    }
    tokens_.expect_op(")");
  }

  // A body that runs as a function: loops around it are not its own.
  void parse_code(MacroCode& code, std::string_view end) {
    const int loops_outside = std::exchange(loops_, 0);
    const size_t n_varargs = expressions_.n_mentions(varargs_);
    const size_t n_kwargs = expressions_.n_mentions(kwargs_);
    const size_t n_caller = expressions_.n_mentions(caller_);
    code.body = parse_block({end});
    tokens_.take();
    code.uses_varargs = expressions_.n_mentions(varargs_) > n_varargs;
    code.uses_kwargs = expressions_.n_mentions(kwargs_) > n_kwargs;
    code.uses_caller = expressions_.n_mentions(caller_) > n_caller;
    loops_ = loops_outside;
  }

  StatementPtr parse_filter(Span span) {
    auto node = std::make_unique<FilterBlock>(StatementKind::kFilterBlock, span);
    node->filter = expressions_.parse_block_filters();
    end_tag();
    node->body = parse_block({"endfilter"});
    tokens_.take();
    end_tag();
    return node;
  }

  StatementPtr parse_with(Span span) {
    auto node = std::make_unique<With>(StatementKind::kWith, span);
    while (!tokens_.is(Type::kBlockEnd)) {
      if (!node->values.empty()) tokens_.expect_op(",");
      Target target = parse_target_part(false);
      tokens_.expect_op("=");
      node->values.emplace_back(std::move(target), expressions_.parse_expression());
    }
    end_tag();
    node->body = parse_block({"endwith"});
    tokens_.take();
    end_tag();
    return node;
  }

  StatementPtr parse_generation(Span span) {
    auto node = std::make_unique<Generation>(StatementKind::kGeneration, span);
    end_tag();
    const int loops_outside = std::exchange(loops_, 0);
    node->body = parse_block({"endgeneration"});
    loops_ = loops_outside;
    tokens_.take();
    end_tag();
    return node;
  }

  StatementPtr parse_jump(const std::string& tag, Span span) {
    at_ = span;
    if (loops_ == 0) fail_syntax("'" + tag + "' outside a loop");
    end_tag();
    return std::make_unique<Statement>(
        tag == "break" ? StatementKind::kBreak : StatementKind::kContinue, span);
  }

  // a   a, b   a, (b, c)   and, where allowed, ns.attribute
  Target parse_target(bool with_attribute = false) {
    Target first = parse_target_part(with_attribute);
    if (!tokens_.is_op(",")) return first;
    Target tuple;
    tuple.kind = Target::Kind::kTuple;
    tuple.parts.push_back(std::move(first));
    while (tokens_.skip_op(",")) {
      if (!tokens_.is(Type::kName) && !tokens_.is_op("(")) break;
      if (tokens_.is_name("in")) break;
      tuple.parts.push_back(parse_target_part(with_attribute));
    }
    return tuple;
  }

  Target parse_target_part(bool with_attribute) {
    if (tokens_.skip_op("(")) {
      if (++nesting_ > kMaxNesting) fail_syntax("the targets are nested too deep");
      Target inner = parse_target(with_attribute);
      --nesting_;
      tokens_.expect_op(")");
      return inner;
    }
    const std::string name = tokens_.expect(Type::kName, "a name to assign to").text;
    Target target;
    if (with_attribute && tokens_.skip_op(".")) {
      target.kind = Target::Kind::kAttribute;
      target.name = expressions_.intern(name);
      target.attribute = tokens_.expect(Type::kName, "an attribute's name").text;
      return target;
    }
    target.name = assignable(name);
    return target;
  }

  NameId assignable(const std::string& name) {
    for (const char* constant : {"true", "false", "none", "True", "False", "None"}) {
      if (name == constant) fail_syntax("cannot assign to '" + name + "'");
    }
    return expressions_.intern(name);
  }

  Span& at_;
  TokenStream tokens_;
  ExpressionParser expressions_;
  NameId caller_ = 0, varargs_ = 0, kwargs_ = 0;
  int loops_ = 0;  // loops around the current statement, for break and continue
  int nesting_ = 0;
  std::vector<MissingTag>* missing_;
};

}  // namespace

Program parse_program(std::string_view source, Span& at) {
  return Parser(source, at, nullptr).run();
}

Program parse_program_leniently(std::string_view source, Span& at,
                                std::vector<MissingTag>& missing) {
  return Parser(source, at, &missing).run();
}

}  // namespace dovetail::core::jinja
