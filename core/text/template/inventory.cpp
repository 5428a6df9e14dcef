#include "core/text/template/inventory.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/text/template/builtins.hpp"
#include "core/text/template/parser.hpp"
#include "core/text/template/parts.hpp"
#include "core/text/template/source_place.hpp"

namespace dovetail::core {
namespace {

using namespace jinja;  // NOLINT(google-build-using-namespace): this file is about its tree

// Uses of one kind while they are collected.
class Uses {
 public:
  void add(const std::string& name, Span at, const std::string& missing = {}) {
    Entry& entry = by_name_[name];
    entry.begins.push_back(at.begin);
    if (entry.missing.empty()) entry.missing = missing;
  }

  std::vector<TemplateUse> take(const std::string& source, uint32_t& n_missing) const {
    std::vector<TemplateUse> out;
    for (const auto& [name, entry] : by_name_) {
      TemplateUse use{name, {}, entry.missing};
      for (const uint32_t begin : entry.begins) use.lines.push_back(place_in(source, begin).line);
      std::sort(use.lines.begin(), use.lines.end());
      if (!use.missing.empty()) n_missing += static_cast<uint32_t>(use.lines.size());
      out.push_back(std::move(use));
    }
    return out;
  }

 private:
  struct Entry {
    std::vector<uint32_t> begins;
    std::string missing;
  };
  std::map<std::string, Entry> by_name_;
};

const std::string* string_constant(const Expr& e) {
  if (e.kind != ExprKind::kConstant) return nullptr;
  const Value& value = static_cast<const Constant&>(e).value;
  return value.is_string() ? &value.text().bytes() : nullptr;
}

class Walker {
 public:
  explicit Walker(const Program& program) : program_(program) {
    scopes_.emplace_back();
    walk(program.body);
    // A macro runs when it is called: it sees what the template has set by then.
    for (const Read& read : reads_in_macros_) {
      if (!scopes_[0].contains(read.name)) resolve_global(read);
    }
  }

  Uses statements, filters, tests, functions, methods, macros, variables, fields;

 private:
  struct Read {
    NameId name;
    Span span;
    bool is_call;
  };

  const std::string& text_of(NameId name) const {
    return program_.names[static_cast<size_t>(name)];
  }

  void walk(const Block& block) {
    for (const StatementPtr& statement : block) walk(*statement);
  }

  void walk_scoped(const Block& block) {
    scopes_.emplace_back();
    walk(block);
    scopes_.pop_back();
  }

  void walk(const ExprPtr& e) {
    if (e != nullptr) walk(*e);
  }

  void walk(const Statement& s) {
    switch (s.kind) {
      case StatementKind::kText:
        return;
      case StatementKind::kPrint:
        return walk(static_cast<const Print&>(s).value);
      case StatementKind::kFor:
        return walk_for(static_cast<const For&>(s));
      case StatementKind::kIf: {
        const auto& node = static_cast<const If&>(s);
        statements.add("if", s.span);
        for (const auto& [condition, body] : node.branches) {
          walk(condition);
          walk(body);
        }
        return walk(node.otherwise);
      }
      case StatementKind::kSet: {
        const auto& node = static_cast<const Set&>(s);
        statements.add("set", s.span);
        walk(node.value);
        return assign(node.target);
      }
      case StatementKind::kSetBlock: {
        const auto& node = static_cast<const SetBlock&>(s);
        statements.add("set", s.span);
        walk(node.filter);
        walk_scoped(node.body);
        return assign(node.target);
      }
      case StatementKind::kMacro: {
        const auto& node = static_cast<const Macro&>(s);
        statements.add("macro", s.span);
        macros.add(node.code.name, s.span);
        scopes_.back().insert(node.name);
        return walk_code(node.code);
      }
      case StatementKind::kCallBlock: {
        const auto& node = static_cast<const CallBlock&>(s);
        statements.add("call", s.span);
        walk(*node.call);
        return walk_code(node.code);
      }
      case StatementKind::kFilterBlock: {
        const auto& node = static_cast<const FilterBlock&>(s);
        statements.add("filter", s.span);
        walk(node.filter);
        return walk_scoped(node.body);
      }
      case StatementKind::kWith: {
        const auto& node = static_cast<const With&>(s);
        statements.add("with", s.span);
        for (const auto& [target, value] : node.values) walk(value);
        scopes_.emplace_back();
        for (const auto& [target, value] : node.values) assign(target);
        walk(node.body);
        return scopes_.pop_back();
      }
      case StatementKind::kGeneration:
        statements.add("generation", s.span);
        return walk_scoped(static_cast<const Generation&>(s).body);
      case StatementKind::kBreak:
        return statements.add("break", s.span);
      case StatementKind::kContinue:
        return statements.add("continue", s.span);
    }
  }

  void walk_for(const For& s) {
    statements.add("for", s.span);
    walk(s.iterable);
    scopes_.emplace_back();
    assign(s.target);
    scopes_.back().insert(program_.loop);
    walk(s.condition);
    walk(s.body);
    scopes_.pop_back();
    walk_scoped(s.otherwise);
  }

  void walk_code(const MacroCode& code) {
    scopes_.emplace_back();
    ++macro_depth_;
    scopes_.back().insert({program_.caller, program_.varargs, program_.kwargs});
    for (const MacroCode::Parameter& parameter : code.parameters) {
      walk(parameter.fallback);
      scopes_.back().insert(parameter.name);
    }
    walk(code.body);
    --macro_depth_;
    scopes_.pop_back();
  }

  void assign(const Target& target) {
    switch (target.kind) {
      case Target::Kind::kName:
        scopes_.back().insert(target.name);
        return;
      case Target::Kind::kAttribute:
        return;
      case Target::Kind::kTuple:
        for (const Target& part : target.parts) assign(part);
    }
  }

  void read(NameId name, Span span, bool is_call) {
    for (const std::set<NameId>& scope : scopes_) {
      if (scope.contains(name)) return;
    }
    const Read found{name, span, is_call};
    if (macro_depth_ > 0)
      reads_in_macros_.push_back(found);
    else
      resolve_global(found);
  }

  void resolve_global(const Read& read) {
    const std::string& name = text_of(read.name);
    if (has_function(name)) return functions.add(name, read.span);
    if (!read.is_call) return variables.add(name, read.span);
    functions.add(name, read.span, unknown_function(name).message());
  }

  void walk(const Expr& e) {
    switch (e.kind) {
      case ExprKind::kName:
        return read(static_cast<const Name&>(e).id, e.span, false);
      case ExprKind::kCall:
        return walk_call(static_cast<const Call&>(e));
      case ExprKind::kFilter:
        walk_filter(static_cast<const FilterExpr&>(e));
        break;
      case ExprKind::kTest: {
        const auto& test = static_cast<const TestExpr&>(e);
        add_test(test.name, test.name_span);
        break;
      }
      case ExprKind::kAttribute:
        fields.add(static_cast<const Attribute&>(e).name, e.span);
        break;
      case ExprKind::kItem:
        if (const std::string* key = string_constant(*static_cast<const Item&>(e).key))
          fields.add(*key, e.span);
        break;
      case ExprKind::kCompare:
        walk_key_tests(static_cast<const Compare&>(e));
        break;
      default:
        break;
    }
    visit_parts(e, [this](const Expr& part) { walk(part); });
  }

  // 'key' in x
  void walk_key_tests(const Compare& e) {
    const std::string* key = string_constant(*e.first);
    if (key != nullptr && e.rest[0].first >= CompareOp::kIn) fields.add(*key, e.span);
  }

  void walk_call(const Call& e) {
    if (e.callee->kind == ExprKind::kName) {
      read(static_cast<const Name&>(*e.callee).id, e.callee->span, true);
    } else if (e.callee->kind == ExprKind::kAttribute) {
      const auto& callee = static_cast<const Attribute&>(*e.callee);
      methods.add(callee.name, e.span, why_no_method(callee.name));
      walk(*callee.object);
      if (callee.name == "get" && !e.args.positional.empty()) {
        if (const std::string* key = string_constant(*e.args.positional[0]))
          fields.add(*key, e.span);
      }
    } else {
      walk(*e.callee);
    }
    visit_parts(e.args, [this](const Expr& part) { walk(part); });
  }

  void walk_filter(const FilterExpr& e) {
    add_filter(e.name, e.name_span);
    const std::vector<ExprPtr>& args = e.args.positional;
    const auto named_by = [&](size_t i) {
      return args.size() > i ? string_constant(*args[i]) : nullptr;
    };
    if (e.name == "map" && named_by(0)) add_filter(*named_by(0), args[0]->span);
    if ((e.name == "select" || e.name == "reject") && named_by(0))
      add_test(*named_by(0), args[0]->span);
    if ((e.name == "selectattr" || e.name == "rejectattr") && named_by(0)) {
      fields.add(*named_by(0), args[0]->span);
      if (named_by(1)) add_test(*named_by(1), args[1]->span);
    }
  }

  void add_filter(const std::string& name, Span at) {
    filters.add(name, at, find_filter(name) ? std::string() : unknown_filter(name).message());
  }
  void add_test(const std::string& name, Span at) {
    tests.add(name, at, find_test(name) ? std::string() : unknown_test(name).message());
  }

  const Program& program_;
  std::vector<std::set<NameId>> scopes_;
  std::vector<Read> reads_in_macros_;
  int macro_depth_ = 0;
};

}  // namespace

bool TemplateInventory::reads_field(std::string_view name) const {
  return std::any_of(fields.begin(), fields.end(),
                     [&](const TemplateUse& use) { return use.name == name; });
}

Result<TemplateInventory> take_inventory(const std::string& raw, const std::string& name) {
  DVT_TRY(const std::string source, prepare_source(raw, name));
  Span at;
  try {
    std::vector<MissingTag> missing;
    const Program program = parse_program_leniently(source, at, missing);
    Walker walker(program);
    for (const MissingTag& tag : missing)
      walker.statements.add(tag.name, tag.span, tag.fault.message());
    TemplateInventory out;
    out.statements = walker.statements.take(source, out.n_missing);
    out.filters = walker.filters.take(source, out.n_missing);
    out.tests = walker.tests.take(source, out.n_missing);
    out.functions = walker.functions.take(source, out.n_missing);
    out.methods = walker.methods.take(source, out.n_missing);
    out.macros = walker.macros.take(source, out.n_missing);
    out.variables = walker.variables.take(source, out.n_missing);
    out.fields = walker.fields.take(source, out.n_missing);
    return out;
  } catch (const Fault& fault) {
    return Status{fault.code(), located(name, source, at, fault.message())};
  } catch (const std::bad_alloc&) {
    return Status{Code::kNoMemory, name + ": not enough memory to parse the template"};
  }
}

}  // namespace dovetail::core
