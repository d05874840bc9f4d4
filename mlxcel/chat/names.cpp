#include "mlxcel/chat/names.h"

namespace mlxcel::chat {

namespace {

// Walks a whole tree in the order of the text, but for the parts where Jinja
// walks otherwise: targets come before what is assigned.
class Walker : private ExprVisitor {
 public:
  void statements(const Body& body) {
    for (const auto& stmt : body) {
      statement(*stmt);
    }
  }
  void statement(Stmt& stmt);

 protected:
  virtual void on_expression(Expr&) {}
  /// A name that is assigned, or a parameter.
  virtual void on_store(const Target&) {}
  virtual void on_parameter(std::string_view) {}
  /// False to pass over the block.
  virtual bool on_block(const Block&) {
    return true;
  }

 private:
  void visit(Expr& expr) override {
    on_expression(expr);
    expr.children(*this);
  }
  void expression(const ExprPtr& expr) {
    if (expr) {
      visit(*expr);
    }
  }
  void target(const Target& target) {
    if (target.type == Target::Type::name) {
      on_store(target);
    }
    for (const Target& item : target.items) {
      this->target(item);
    }
  }
  void parameter_names(const Target& target) {
    if (target.type == Target::Type::name) {
      on_parameter(target.name.view());
    }
    for (const Target& item : target.items) {
      parameter_names(item);
    }
  }
  void macro(const Macro& node);
  void loop(For& node);
};

void Walker::macro(const Macro& node) {
  for (const Parameter& parameter : node.parameters) {
    on_parameter(parameter.name);
  }
  for (const Parameter& parameter : node.parameters) {
    expression(parameter.fallback);
  }
  statements(node.body);
}

void Walker::loop(For& node) {
  target(node.target);
  expression(node.iterable);
  statements(node.body);
  statements(node.otherwise);
  expression(node.test);
}

void Walker::statement(Stmt& stmt) {
  switch (stmt.type) {
    case StmtType::print:
      expression(static_cast<Print&>(stmt).value);
      break;
    case StmtType::conditional: {
      auto& node = static_cast<If&>(stmt);
      for (const auto& [test, body] : node.branches) {
        expression(test);
        statements(body);
      }
      statements(node.otherwise);
      break;
    }
    case StmtType::loop:
      loop(static_cast<For&>(stmt));
      break;
    case StmtType::assign:
      target(static_cast<Assign&>(stmt).target);
      expression(static_cast<Assign&>(stmt).value);
      break;
    case StmtType::assign_block: {
      auto& node = static_cast<AssignBlock&>(stmt);
      target(node.target);
      expression(node.filter);
      statements(node.body);
      break;
    }
    case StmtType::macro:
      macro(static_cast<MacroStmt&>(stmt).macro);
      break;
    case StmtType::call_block:
      expression(static_cast<CallBlock&>(stmt).call);
      macro(static_cast<CallBlock&>(stmt).caller);
      break;
    case StmtType::filter_block:
      statements(static_cast<FilterBlock&>(stmt).body);
      expression(static_cast<FilterBlock&>(stmt).filter);
      break;
    case StmtType::with: {
      auto& node = static_cast<With&>(stmt);
      for (const auto& [into, value] : node.values) {
        parameter_names(into);
      }
      for (const auto& [into, value] : node.values) {
        expression(value);
      }
      statements(node.body);
      break;
    }
    case StmtType::block:
      if (on_block(static_cast<Block&>(stmt))) {
        statements(static_cast<Block&>(stmt).body);
      }
      break;
    case StmtType::autoescape:
      expression(static_cast<Autoescape&>(stmt).on);
      statements(static_cast<Autoescape&>(stmt).body);
      break;
    case StmtType::generation:
      statements(static_cast<Generation&>(stmt).macro.body);
      break;
    case StmtType::unsupported:
      for (const auto& expr : static_cast<Unsupported&>(stmt).expressions) {
        expression(expr);
      }
      break;
    default:
      break;
  }
}

class Undeclared final : public Walker {
 public:
  explicit Undeclared(std::set<std::string> names) : names_(std::move(names)) {}

  std::set<std::string> found;

 private:
  void on_expression(Expr& expr) override {
    if (expr.type == ExprType::name) {
      std::string name(static_cast<Name&>(expr).name.view());
      if (names_.count(name) > 0) {
        found.insert(std::move(name));
      }
    }
  }
  void on_store(const Target& target) override {
    on_parameter(target.name.view());
  }
  void on_parameter(std::string_view name) override {
    names_.erase(std::string(name));
  }
  bool on_block(const Block&) override {
    return false;
  }

  std::set<std::string> names_;
};

class StoreFinder final : public Walker {
 public:
  explicit StoreFinder(std::string_view name) : name_(name) {}

  std::optional<uint32_t> position;

 private:
  void on_store(const Target& target) override {
    if (!position && target.name.view() == name_) {
      position = target.position;
    }
  }

  std::string_view name_;
};

class ScopedBlockFinder final : public Walker {
 public:
  bool found = false;

 private:
  bool on_block(const Block& block) override {
    found = found || block.scoped;
    return true;
  }
};

class DefinedTestFinder final : public Walker {
 public:
  explicit DefinedTestFinder(std::string_view name) : name_(name) {}

  bool found = false;

 private:
  void on_expression(Expr& expr) override {
    if (expr.type != ExprType::test) {
      return;
    }
    const auto& test = static_cast<const Test&>(expr);
    if ((test.name == "defined" || test.name == "undefined") &&
        test.input->type == ExprType::name) {
      found =
          found || static_cast<const Name&>(*test.input).name.view() == name_;
    }
  }

  std::string_view name_;
};

}  // namespace

std::set<std::string> undeclared_names(
    const Body& body, std::set<std::string> names
) {
  Undeclared walker(std::move(names));
  walker.statements(body);
  return std::move(walker.found);
}

std::optional<uint32_t> find_store(For& loop, std::string_view name) {
  StoreFinder walker(name);
  walker.statement(loop);
  return walker.position;
}

bool has_scoped_block(const Body& body) {
  ScopedBlockFinder walker;
  walker.statements(body);
  return walker.found;
}

bool tests_if_defined(const Program& program, std::string_view name) {
  DefinedTestFinder walker(name);
  walker.statements(program.body);
  return walker.found;
}

}  // namespace mlxcel::chat
