#include "mlxcel/chat/symbols.h"

namespace mlxcel::chat {

uint32_t SlotTable::slot_of(const std::string& name) {
  auto [it, added] = slots.try_emplace(name, function->function->slots);
  function->function->slots += added;
  return it->second;
}

Symbols Symbols::branch() const {
  Symbols result(*table_, parent_);
  result.base_ = this;
  return result;
}

void Symbols::merge(std::initializer_list<const Symbols*> branches) {
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
    loads_[table_->slot_of(name)] = start_value(name, false);
  }
}

void Symbols::load(const std::string& name) {
  if (!find(name)) {
    loads_[define(name)] = start_value(name, false);
  }
}

void Symbols::store(const std::string& name) {
  stores_.insert(name);
  if (!is_own(name)) {
    loads_[define(name)] = start_value(name, true);
  }
}

uint32_t Symbols::declare(const std::string& name) {
  stores_.insert(name);
  uint32_t slot = define(name);
  loads_.erase(slot);
  return slot;
}

std::optional<Symbols::Ref> Symbols::find(const std::string& name) const {
  for (const Symbols* at = this; at; at = at->base_ ? at->base_ : at->parent_) {
    auto found = at->refs_.find(name);
    if (found != at->refs_.end()) {
      return Ref{at->table_->function, found->second};
    }
  }
  return std::nullopt;
}

VarRef Symbols::reference(Ref ref) const {
  VarRef result;
  result.slot = ref.slot;
  for (const FunctionScope* at = table_->function; at != ref.function;
       at = at->outer) {
    ++result.hops;
  }
  return result;
}

Loads Symbols::loads() const {
  Loads all;
  for (const auto& [slot, load] : loads_) {
    all.push_back(load);
    all.back().slot = slot;
  }
  return all;
}

std::vector<std::pair<std::string, VarRef>> Symbols::stored() const {
  std::set<std::string> names;
  for (const Symbols* at = this; at; at = at->parent_) {
    names.insert(at->stores_.begin(), at->stores_.end());
  }
  std::vector<std::pair<std::string, VarRef>> all;
  all.reserve(names.size());
  for (const std::string& name : names) {
    all.emplace_back(name, reference(*find(name)));
  }
  return all;
}

uint32_t Symbols::define(const std::string& name) {
  return refs_[name] = table_->slot_of(name);
}

// A name of a scope around this one starts from its value there. Another one
// is looked up, unless it is set before it is read.
Load Symbols::start_value(const std::string& name, bool stored_first) const {
  Load load;
  if (auto outer = parent_ ? parent_->find(name) : std::nullopt) {
    load.from = Load::From::outer;
    load.outer = reference(*outer);
  } else if (!stored_first) {
    load.from = Load::From::context;
    load.name = Value::of(name);
  }
  return load;
}

// Known to this scope: in this branch or around it.
bool Symbols::is_own(const std::string& name) const {
  for (const Symbols* at = this; at; at = at->base_) {
    if (at->refs_.count(name) > 0) {
      return true;
    }
  }
  return false;
}

bool Symbols::is_stored(const std::string& name) const {
  for (const Symbols* at = this; at; at = at->base_) {
    if (at->stores_.count(name) > 0) {
      return true;
    }
  }
  return false;
}

void Inspector::expression(Expr& expr) {
  visit(expr);
}

void Inspector::statements(const Body& body) {
  for (const auto& stmt : body) {
    statement(*stmt);
  }
}

void Inspector::declare(const Target& target) {
  if (target.type == Target::Type::name) {
    symbols_->declare(std::string(target.name.view()));
  }
  for (const Target& item : target.items) {
    declare(item);
  }
}

void Inspector::visit(Expr& expr) {
  if (expr.type == ExprType::name) {
    symbols_->load(std::string(static_cast<Name&>(expr).name.view()));
  }
  expr.children(*this);
}

void Inspector::store(const Target& target) {
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

Symbols Inspector::branch(const Body& body) {
  Symbols result = symbols_->branch();
  Inspector(result).statements(body);
  return result;
}

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

}  // namespace mlxcel::chat
