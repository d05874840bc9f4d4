#include "mlxcel/chat/scope.h"

#include <fmt/format.h>

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "mlxcel/chat/lexer.h"
#include "mlxcel/chat/names.h"

namespace mlxcel::chat {

namespace {

struct FunctionScope {
  Function* function;
  FunctionScope* outer;
};

/// The names of one scope that have slots, shared by its branches.
struct SlotTable {
  FunctionScope* function;
  std::map<std::string, uint32_t> slots;

  uint32_t slot_of(const std::string& name) {
    auto [it, added] = slots.try_emplace(name, function->function->slots);
    function->function->slots += added;
    return it->second;
  }
};

// What one scope knows about names. The rules are those of Jinja's compiler
// (jinja2/idtracking.py, class Symbols), which published templates rely on.
class Symbols {
 public:
  Symbols(SlotTable& table, const Symbols* parent)
      : table_(&table), parent_(parent) {}

  struct Ref {
    FunctionScope* function;
    uint32_t slot;
  };

  // For a branch of an `if`: knows what this does and adds its own, which
  // merge() then brings in.
  Symbols branch() const {
    Symbols result(*table_, parent_);
    result.base_ = this;
    return result;
  }

  std::optional<Ref> find(const std::string& name) const {
    for (const Symbols* at = this; at;
         at = at->base_ ? at->base_ : at->parent_) {
      auto found = at->refs_.find(name);
      if (found != at->refs_.end()) {
        return Ref{at->table_->function, found->second};
      }
    }
    return std::nullopt;
  }

  void load(const std::string& name) {
    if (!find(name)) {
      loads_[define(name)] = from_context(name);
    }
  }

  void store(const std::string& name) {
    stores_.insert(name);
    if (is_own(name)) {
      return;
    }
    std::optional<Ref> outer = parent_ ? parent_->find(name) : std::nullopt;
    loads_[define(name)] = outer ? from_outer(*outer) : Load();
  }

  // Set before the scope is entered.
  uint32_t declare(const std::string& name) {
    stores_.insert(name);
    uint32_t slot = define(name);
    loads_.erase(slot);
    return slot;
  }

  // Takes over what the branches of an `if` did. What one of them stores may
  // be read behind it, so it starts from its outer value.
  void merge(std::initializer_list<const Symbols*> branches) {
    std::set<std::string> stored;
    for (const Symbols* branch : branches) {
      for (const std::string& name : branch->stores_) {
        if (!is_stored(name)) {
          stored.insert(name);
        }
      }
    }
    for (const Symbols* branch : branches) {
      refs_.insert(branch->refs_.begin(), branch->refs_.end());
      for (const auto& [slot, load] : branch->loads_) {
        loads_[slot] = load;
      }
      stores_.insert(branch->stores_.begin(), branch->stores_.end());
    }
    for (const std::string& name : stored) {
      std::optional<Ref> outer = parent_ ? parent_->find(name) : std::nullopt;
      loads_[table_->slot_of(name)] =
          outer ? from_outer(*outer) : from_context(name);
    }
  }

  Loads loads() const {
    Loads all;
    for (const auto& [slot, load] : loads_) {
      all.push_back(load);
      all.back().slot = slot;
    }
    return all;
  }

  // The variables that this scope and those around it set.
  std::vector<std::pair<std::string, VarRef>> stored() const {
    std::set<std::string> names;
    for (const Symbols* at = this; at; at = at->parent_) {
      names.insert(at->stores_.begin(), at->stores_.end());
    }
    std::vector<std::pair<std::string, VarRef>> all;
    for (const std::string& name : names) {
      all.emplace_back(name, reference(*find(name)));
    }
    return all;
  }

  VarRef reference(Ref ref) const {
    VarRef result;
    result.slot = ref.slot;
    for (const FunctionScope* at = table_->function; at != ref.function;
         at = at->outer) {
      ++result.hops;
    }
    return result;
  }

 private:
  uint32_t define(const std::string& name) {
    return refs_[name] = table_->slot_of(name);
  }
  static Load from_context(const std::string& name) {
    Load load;
    load.from = Load::From::context;
    load.name = Value::of(name);
    return load;
  }
  Load from_outer(Ref outer) const {
    Load load;
    load.from = Load::From::outer;
    load.outer = reference(outer);
    return load;
  }

  // Known to this scope, in this branch or around it.
  bool is_own(const std::string& name) const {
    for (const Symbols* at = this; at; at = at->base_) {
      if (at->refs_.count(name) > 0) {
        return true;
      }
    }
    return false;
  }
  bool is_stored(const std::string& name) const {
    for (const Symbols* at = this; at; at = at->base_) {
      if (at->stores_.count(name) > 0) {
        return true;
      }
    }
    return false;
  }

  SlotTable* table_;
  const Symbols* parent_;
  const Symbols* base_ = nullptr;
  std::map<std::string, uint32_t> refs_;
  std::map<uint32_t, Load> loads_;
  std::set<std::string> stores_;
};

// Collects the names of expressions and statements that belong to one scope,
// stopping at scopes inside of it.
class Inspector final : private ExprVisitor {
 public:
  explicit Inspector(Symbols& symbols) : symbols_(&symbols) {}

  void expression(Expr& expr) {
    visit(expr);
  }
  void statements(const Body& body) {
    for (const auto& stmt : body) {
      statement(*stmt);
    }
  }
  void declare(const Target& target) {
    if (target.type == Target::Type::name) {
      symbols_->declare(std::string(target.name.view()));
    }
    for (const Target& item : target.items) {
      declare(item);
    }
  }

 private:
  void visit(Expr& expr) override {
    if (expr.type == ExprType::name) {
      symbols_->load(std::string(static_cast<Name&>(expr).name.view()));
    }
    expr.children(*this);
  }
  void store(const Target& target) {
    switch (target.type) {
      case Target::Type::name:
        symbols_->store(std::string(target.name.view()));
        break;
      case Target::Type::attribute:
        symbols_->load(std::string(target.name.view()));
        break;
      case Target::Type::tuple:
        for (const Target& item : target.items) {
          store(item);
        }
    }
  }
  Symbols branch(const Body& body) {
    Symbols result = symbols_->branch();
    Inspector(result).statements(body);
    return result;
  }
  void conditional(If& node);
  void statement(Stmt& stmt);

  Symbols* symbols_;
};

void Inspector::conditional(If& node) {
  expression(*node.branches[0].first);
  Symbols first = branch(node.branches[0].second);
  // Each `elif` counts as an `if` of its own in one common branch.
  Symbols others = symbols_->branch();
  Inspector inspector(others);
  for (size_t i = 1; i < node.branches.size(); ++i) {
    inspector.expression(*node.branches[i].first);
    Symbols body = inspector.branch(node.branches[i].second);
    others.merge({&body});
  }
  Symbols otherwise = branch(node.otherwise);
  symbols_->merge({&first, &others, &otherwise});
}

void Inspector::statement(Stmt& stmt) {
  switch (stmt.type) {
    case StmtType::print:
      expression(*static_cast<Print&>(stmt).value);
      break;
    case StmtType::conditional:
      conditional(static_cast<If&>(stmt));
      break;
    case StmtType::loop:
      expression(*static_cast<For&>(stmt).iterable);
      break;
    case StmtType::assign:
      expression(*static_cast<Assign&>(stmt).value);
      store(static_cast<Assign&>(stmt).target);
      break;
    case StmtType::assign_block:
      store(static_cast<AssignBlock&>(stmt).target);
      break;
    case StmtType::macro:
      symbols_->store(static_cast<MacroStmt&>(stmt).macro.name);
      break;
    case StmtType::call_block:
      expression(*static_cast<CallBlock&>(stmt).call);
      break;
    case StmtType::filter_block:
      expression(*static_cast<FilterBlock&>(stmt).filter);
      break;
    case StmtType::with:
      for (const auto& [target, value] : static_cast<With&>(stmt).values) {
        expression(*value);
      }
      break;
    case StmtType::unsupported:
      for (const auto& expr : static_cast<Unsupported&>(stmt).expressions) {
        expression(*expr);
      }
      break;
    default:
      break;
  }
}

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
}

void Resolver::expression(Expr& expr, Scope& scope, bool soft) {
  scope_ = &scope;
  soft_ = soft;
  visit(expr);
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
