#include "mlxcel/chat/scope.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "mlxcel/chat/lexer.h"
#include "mlxcel/chat/names.h"
#include "mlxcel/chat/symbols.h"

namespace mlxcel::chat {

namespace {

struct Scope {
  Scope(FunctionScope& f, const Symbols* parent, bool loop)
      : table{&f, {}}, symbols(table, parent), in_loop(loop) {}
  /// A scope inside of another, in the same function.
  explicit Scope(Scope& outer)
      : Scope(*outer.table.function, &outer.symbols, outer.in_loop) {}
  Scope(const Scope&) = delete;

  SlotTable table;
  Symbols symbols;
  bool in_loop;
};

// Visits everything once, in its scope, and fills in the slots.
class Resolver final : private ExprVisitor {
 public:
  void run(Program& program);

 private:
  void statements(Body& body, Scope& scope, bool soft) {
    for (const auto& stmt : body) {
      statement(*stmt, scope, soft);
    }
  }
  void statement(Stmt& stmt, Scope& scope, bool soft);
  void expression(Expr& expr, Scope& scope, bool soft);
  void visit(Expr& expr) override;
  void assign(Target& target, Scope& scope);
  VarRef reference(std::string_view name, Scope& scope);

  void loop(For& node, Scope& scope, bool soft);
  void loop_parts(For& node, Scope& outer);
  void assign_block(AssignBlock& node, Scope& scope);
  void macro(Macro& node, Scope& outer);
  void filter_block(FilterBlock& node, Scope& outer);
  void with(With& node, Scope& outer, bool soft);
  void block(Block& node, Scope& outer);
  void autoescape(Autoescape& node, Scope& outer);
  void macro_body(Macro& node, Scope& scope);
  void special_slots(Macro& node, Scope& scope);

  Scope* scope_ = nullptr;  // of the expression being visited
  bool soft_ = false;       // inside an `if`, where a filter may be unknown
  Scope* root_ = nullptr;
  std::set<std::string> blocks_;
};

void Resolver::run(Program& program) {
  FunctionScope function{&program.function, nullptr};
  Scope root(function, nullptr, false);
  root_ = &root;
  Inspector(root.symbols).statements(program.body);
  statements(program.body, root, false);
  program.loads = root.symbols.loads();
  root_ = nullptr;
}

void Resolver::expression(Expr& expr, Scope& scope, bool soft) {
  Scope* before = std::exchange(scope_, &scope);
  soft_ = soft;
  visit(expr);
  scope_ = before;
}

void Resolver::visit(Expr& expr) {
  bool soft = soft_;
  switch (expr.type) {
    case ExprType::name: {
      auto& name = static_cast<Name&>(expr);
      name.ref = reference(name.name.view(), *scope_);
      return;
    }
    case ExprType::filter: {
      auto& filter = static_cast<Filter&>(expr);
      if (!filter.info && !soft_) {
        throw SyntaxFault{
            expr.position, fmt::format("unknown filter '{}'", filter.name)};
      }
      break;
    }
    case ExprType::test: {
      auto& test = static_cast<Test&>(expr);
      if (!test.info && !soft_) {
        throw SyntaxFault{
            expr.position, fmt::format("unknown test '{}'", test.name)};
      }
      break;
    }
    case ExprType::conditional:
      soft_ = true;
      break;
    default:
      break;
  }
  expr.children(*this);
  soft_ = soft;
}

VarRef Resolver::reference(std::string_view name, Scope& scope) {
  std::string key(name);
  scope.symbols.load(key);
  return scope.symbols.reference(*scope.symbols.find(key));
}

void Resolver::assign(Target& target, Scope& scope) {
  if (target.type == Target::Type::tuple) {
    for (Target& item : target.items) {
      assign(item, scope);
    }
  } else {
    target.ref = reference(target.name.view(), scope);
    target.exported = &scope == root_ && target.type == Target::Type::name;
  }
}

void Resolver::statement(Stmt& stmt, Scope& scope, bool soft) {
  switch (stmt.type) {
    case StmtType::text:
      break;
    case StmtType::print:
      expression(*static_cast<Print&>(stmt).value, scope, soft);
      break;
    case StmtType::conditional: {
      auto& node = static_cast<If&>(stmt);
      for (auto& [test, body] : node.branches) {
        expression(*test, scope, true);
        statements(body, scope, true);
      }
      statements(node.otherwise, scope, true);
      break;
    }
    case StmtType::loop:
      loop(static_cast<For&>(stmt), scope, soft);
      break;
    case StmtType::assign: {
      auto& node = static_cast<Assign&>(stmt);
      expression(*node.value, scope, soft);
      assign(node.target, scope);
      break;
    }
    case StmtType::assign_block:
      assign_block(static_cast<AssignBlock&>(stmt), scope);
      break;
    case StmtType::macro: {
      auto& node = static_cast<MacroStmt&>(stmt);
      macro(node.macro, scope);
      assign(node.target, scope);
      break;
    }
    case StmtType::call_block: {
      auto& node = static_cast<CallBlock&>(stmt);
      macro(node.caller, scope);
      expression(*node.call, scope, soft);
      break;
    }
    case StmtType::filter_block:
      filter_block(static_cast<FilterBlock&>(stmt), scope);
      break;
    case StmtType::with:
      with(static_cast<With&>(stmt), scope, soft);
      break;
    case StmtType::block:
      block(static_cast<Block&>(stmt), scope);
      break;
    case StmtType::autoescape:
      autoescape(static_cast<Autoescape&>(stmt), scope);
      break;
    case StmtType::generation:
      macro(static_cast<Generation&>(stmt).macro, scope);
      break;
    case StmtType::break_loop:
    case StmtType::continue_loop:
      if (!scope.in_loop) {
        throw SyntaxFault{stmt.position, "this stands in no loop"};
      }
      break;
    case StmtType::unsupported:
      for (const auto& expr : static_cast<Unsupported&>(stmt).expressions) {
        expression(*expr, scope, soft);
      }
      break;
  }
}

void Resolver::loop(For& node, Scope& scope, bool soft) {
  if (std::optional<uint32_t> position = find_store(node, "loop")) {
    throw SyntaxFault{*position, "'loop' cannot be assigned in a loop"};
  }
  node.extended = node.recursive || has_scoped_block(node.body) ||
                  !undeclared_names(node.body, {"loop"}).empty();
  expression(*node.iterable, scope, soft);
  if (!node.recursive) {
    loop_parts(node, scope);
    return;
  }
  FunctionScope function{&node.function, scope.table.function};
  Scope inside(function, &scope.symbols, false);
  loop_parts(node, inside);
}

void Resolver::loop_parts(For& node, Scope& outer) {
  Scope body(outer);
  body.in_loop = true;
  if (node.extended) {
    node.loop_slot = body.symbols.declare("loop");
  }
  Inspector inspector(body.symbols);
  inspector.declare(node.target);
  inspector.statements(node.body);

  Scope otherwise(outer);
  Inspector(otherwise.symbols).statements(node.otherwise);

  if (node.test) {
    Scope test(outer);
    Inspector test_inspector(test.symbols);
    test_inspector.declare(node.test_target);
    test_inspector.expression(*node.test);
    assign(node.test_target, test);
    expression(*node.test, test, false);
    node.test_loads = test.symbols.loads();
  }
  assign(node.target, body);
  statements(node.body, body, false);
  node.body_loads = body.symbols.loads();
  statements(node.otherwise, otherwise, false);
  node.else_loads = otherwise.symbols.loads();
}

void Resolver::assign_block(AssignBlock& node, Scope& scope) {
  Scope body(scope);
  Inspector(body.symbols).statements(node.body);
  statements(node.body, body, false);
  if (node.filter) {
    expression(*node.filter, body, false);
  }
  node.loads = body.symbols.loads();
  assign(node.target, scope);
}

void Resolver::macro(Macro& node, Scope& outer) {
  FunctionScope function{&node.function, outer.table.function};
  Scope scope(function, &outer.symbols, false);
  macro_body(node, scope);
}

void Resolver::macro_body(Macro& node, Scope& scope) {
  for (Parameter& parameter : node.parameters) {
    parameter.slot = scope.symbols.declare(parameter.name);
  }
  Inspector inspector(scope.symbols);
  for (const Parameter& parameter : node.parameters) {
    if (parameter.fallback) {
      inspector.expression(*parameter.fallback);
    }
  }
  inspector.statements(node.body);
  special_slots(node, scope);
  for (const Parameter& parameter : node.parameters) {
    if (parameter.fallback) {
      expression(*parameter.fallback, scope, false);
    }
  }
  statements(node.body, scope, false);
  node.loads = scope.symbols.loads();
}

void Resolver::special_slots(Macro& node, Scope& scope) {
  std::set<std::string> used =
      undeclared_names(node.body, {"caller", "kwargs", "varargs"});
  std::set<std::string> own;
  for (const Parameter& parameter : node.parameters) {
    own.insert(parameter.name);
    if (parameter.name == "caller" && used.count("caller") > 0 &&
        !parameter.fallback) {
      uint32_t position = node.body.empty() ? 0 : node.body[0]->position;
      throw SyntaxFault{position, "a parameter 'caller' needs a default value"};
    }
  }
  auto slot = [&](const char* name) -> int64_t {
    if (used.count(name) == 0 || own.count(name) > 0) {
      return -1;
    }
    return scope.symbols.declare(name);
  };
  node.caller_slot = slot("caller");
  node.kwargs_slot = slot("kwargs");
  node.varargs_slot = slot("varargs");
}

void Resolver::filter_block(FilterBlock& node, Scope& outer) {
  Scope scope(outer);
  Inspector inspector(scope.symbols);
  inspector.statements(node.body);
  inspector.expression(*node.filter);
  statements(node.body, scope, false);
  expression(*node.filter, scope, false);
  node.loads = scope.symbols.loads();
}

void Resolver::with(With& node, Scope& outer, bool soft) {
  Scope scope(outer);
  Inspector inspector(scope.symbols);
  for (const auto& [target, value] : node.values) {
    inspector.declare(target);
  }
  inspector.statements(node.body);
  for (auto& [target, value] : node.values) {
    assign(target, scope);
    expression(*value, outer, soft);
  }
  statements(node.body, scope, false);
  node.loads = scope.symbols.loads();
}

void Resolver::block(Block& node, Scope& outer) {
  if (!blocks_.insert(node.name).second) {
    throw SyntaxFault{
        node.position, fmt::format("a second block '{}'", node.name)};
  }
  if (node.scoped) {
    node.around = outer.symbols.stored();
  }
  FunctionScope function{&node.function, nullptr};
  Scope scope(function, nullptr, false);
  Inspector(scope.symbols).statements(node.body);
  statements(node.body, scope, false);
  node.loads = scope.symbols.loads();
}

void Resolver::autoescape(Autoescape& node, Scope& outer) {
  Scope scope(outer);
  Inspector inspector(scope.symbols);
  inspector.expression(*node.on);
  inspector.statements(node.body);
  expression(*node.on, scope, false);
  statements(node.body, scope, false);
  node.loads = scope.symbols.loads();
}

}  // namespace

void resolve_scopes(Program& program) {
  Resolver().run(program);
}

}  // namespace mlxcel::chat
