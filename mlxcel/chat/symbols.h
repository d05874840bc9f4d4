#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "mlxcel/chat/ast.h"

namespace mlxcel::chat {

struct FunctionScope {
  Function* function;
  FunctionScope* outer;
};

/// The names of one scope that have slots, shared by its branches.
struct SlotTable {
  FunctionScope* function;
  std::map<std::string, uint32_t> slots;

  uint32_t slot_of(const std::string& name);
};

/// What one scope knows about names. The rules are those of Jinja's compiler
/// (jinja2/idtracking.py, class Symbols), which published templates rely on.
class Symbols {
 public:
  Symbols(SlotTable& table, const Symbols* parent)
      : table_(&table), parent_(parent) {}

  struct Ref {
    FunctionScope* function;
    uint32_t slot;
  };

  /// For a branch of an `if`: knows what this does and adds its own, which
  /// merge() then brings in.
  Symbols branch() const;
  /// Takes over what the branches of an `if` did. What one of them stores may
  /// be read behind it, so it starts from its outer value.
  void merge(std::initializer_list<const Symbols*> branches);

  void load(const std::string& name);
  void store(const std::string& name);
  /// A name that gets its value before the scope is entered; its slot.
  uint32_t declare(const std::string& name);

  std::optional<Ref> find(const std::string& name) const;
  VarRef reference(Ref ref) const;
  /// How the variables get their values when the scope is entered.
  Loads loads() const;
  /// The variables that this scope and those around it set.
  std::vector<std::pair<std::string, VarRef>> stored() const;

 private:
  uint32_t define(const std::string& name);
  Load start_value(const std::string& name, bool stored_first) const;
  bool is_own(const std::string& name) const;
  bool is_stored(const std::string& name) const;

  SlotTable* table_;
  const Symbols* parent_;
  const Symbols* base_ = nullptr;  // of a branch: what it is a branch of
  std::map<std::string, uint32_t> refs_;
  std::map<uint32_t, Load> loads_;
  std::set<std::string> stores_;
};

/// Collects the names of expressions and statements that belong to one scope,
/// stopping at scopes inside of it.
class Inspector final : private ExprVisitor {
 public:
  explicit Inspector(Symbols& symbols) : symbols_(&symbols) {}

  void expression(Expr& expr);
  void statements(const Body& body);
  void declare(const Target& target);

 private:
  void visit(Expr& expr) override;
  void store(const Target& target);
  Symbols branch(const Body& body);
  void conditional(If& node);
  void statement(Stmt& stmt);

  Symbols* symbols_;
};

}  // namespace mlxcel::chat
