#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mlxcel/chat/value.h"

// The tree that the parser makes of a template. Positions are byte offsets in
// the source with its line ends normalised.

namespace mlxcel::chat {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;
struct Stmt;
using Body = std::vector<std::unique_ptr<Stmt>>;

struct FilterInfo;
struct TestInfo;

/// Where a variable lives: `hops` functions outwards, in slot `slot`.
struct VarRef {
  uint32_t hops = 0;
  uint32_t slot = 0;
};

/// How a variable gets its value when a scope is entered.
struct Load {
  enum class From { nothing, context, outer };

  uint32_t slot = 0;
  From from = From::nothing;
  VarRef outer;
  Value name;
};
using Loads = std::vector<Load>;

/// Something with variables of its own: the template, a macro, the body of a
/// `call` block or of a recursive loop.
struct Function {
  uint32_t slots = 0;
};

enum class ExprType : uint8_t {
  constant,
  name,
  space_member,  // `ns.x` as a target of set; nowhere else
  tuple,
  list,
  dict,
  conditional,
  binary,
  logical,
  unary,
  compare,
  concat,
  attribute,
  item,
  slice,
  call,
  filter,
  test,
};

struct ExprVisitor {
  virtual ~ExprVisitor() = default;
  virtual void visit(Expr& expr) = 0;
};

struct Expr {
  explicit Expr(ExprType t, uint32_t p) : type(t), position(p) {}
  virtual ~Expr() = default;
  /// Visits the direct children in the order of evaluation.
  virtual void children(ExprVisitor&) {}

  const ExprType type;
  const uint32_t position;
  /// Levels of the tree below, this one included.
  uint16_t depth = 1;
};

struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr more_positional;  // *args
  ExprPtr more_named;       // **kwargs

  void children(ExprVisitor& visitor);
};

struct Constant final : Expr {
  Constant(uint32_t p, Value v)
      : Expr(ExprType::constant, p), value(std::move(v)) {}
  Value value;
};

struct Name final : Expr {
  Name(uint32_t p, Value n) : Expr(ExprType::name, p), name(std::move(n)) {}
  Value name;
  VarRef ref;
};

struct SpaceMember final : Expr {
  SpaceMember(uint32_t p, Value s, std::string a)
      : Expr(ExprType::space_member, p),
        space(std::move(s)),
        attribute(std::move(a)) {}
  Value space;
  std::string attribute;
};

/// Tuples, lists and `~` chains.
struct Group final : Expr {
  Group(ExprType t, uint32_t p, std::vector<ExprPtr> all)
      : Expr(t, p), items(std::move(all)) {}
  void children(ExprVisitor& visitor) override;
  std::vector<ExprPtr> items;
};

struct DictExpr final : Expr {
  explicit DictExpr(uint32_t p) : Expr(ExprType::dict, p) {}
  void children(ExprVisitor& visitor) override;
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};

struct Conditional final : Expr {
  explicit Conditional(uint32_t p) : Expr(ExprType::conditional, p) {}
  void children(ExprVisitor& visitor) override;
  ExprPtr test;
  ExprPtr yes;
  ExprPtr no;  // may be null
};

enum class Operator : uint8_t {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  both,    // and
  either,  // or
  negate,  // -x
  plus,    // +x
  invert,  // not x
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,
};

/// Arithmetic (binary) and `and`, `or` (logical).
struct Binary final : Expr {
  Binary(ExprType t, uint32_t p, Operator o, ExprPtr l, ExprPtr r)
      : Expr(t, p), op(o), left(std::move(l)), right(std::move(r)) {}
  void children(ExprVisitor& visitor) override;
  Operator op;
  ExprPtr left;
  ExprPtr right;
};

struct Unary final : Expr {
  Unary(uint32_t p, Operator o, ExprPtr e)
      : Expr(ExprType::unary, p), op(o), operand(std::move(e)) {}
  void children(ExprVisitor& visitor) override;
  Operator op;
  ExprPtr operand;
};

/// `a < b <= c`: each operator compares its neighbours.
struct Compare final : Expr {
  explicit Compare(uint32_t p) : Expr(ExprType::compare, p) {}
  void children(ExprVisitor& visitor) override;
  ExprPtr first;
  std::vector<std::pair<Operator, ExprPtr>> rest;
};

struct Attribute final : Expr {
  Attribute(uint32_t p, ExprPtr o, Value n)
      : Expr(ExprType::attribute, p),
        object(std::move(o)),
        name(std::move(n)) {}
  void children(ExprVisitor& visitor) override;
  ExprPtr object;
  Value name;
};

struct Item final : Expr {
  Item(uint32_t p, ExprPtr o, ExprPtr i)
      : Expr(ExprType::item, p), object(std::move(o)), index(std::move(i)) {}
  void children(ExprVisitor& visitor) override;
  ExprPtr object;
  ExprPtr index;
};

struct Slice final : Expr {
  explicit Slice(uint32_t p) : Expr(ExprType::slice, p) {}
  void children(ExprVisitor& visitor) override;
  ExprPtr object;
  ExprPtr start;  // each may be null
  ExprPtr stop;
  ExprPtr step;
};

struct Call final : Expr {
  Call(uint32_t p, ExprPtr c, CallArguments a)
      : Expr(ExprType::call, p),
        callee(std::move(c)),
        arguments(std::move(a)) {}
  void children(ExprVisitor& visitor) override;
  ExprPtr callee;
  CallArguments arguments;
};

/// `input|name(arguments)`; without input the text of a block.
struct Filter final : Expr {
  explicit Filter(uint32_t p) : Expr(ExprType::filter, p) {}
  void children(ExprVisitor& visitor) override;
  ExprPtr input;
  std::string name;
  const FilterInfo* info = nullptr;  // null if unknown
  CallArguments arguments;
};

struct Test final : Expr {
  explicit Test(uint32_t p) : Expr(ExprType::test, p) {}
  void children(ExprVisitor& visitor) override;
  ExprPtr input;
  std::string name;
  const TestInfo* info = nullptr;
  CallArguments arguments;
};

/// What `set` and `for` assign to.
struct Target {
  enum class Type { name, attribute, tuple };

  Type type = Type::name;
  uint32_t position = 0;
  Value name;  // of the variable; of attribute: of the namespace
  VarRef ref;
  /// A variable of the template itself, which blocks see.
  bool exported = false;
  std::string attribute;
  std::vector<Target> items;
};

enum class StmtType : uint8_t {
  text,
  print,
  conditional,
  loop,
  assign,
  assign_block,
  macro,
  call_block,
  filter_block,
  with,
  block,
  autoescape,
  generation,
  break_loop,
  continue_loop,
  unsupported,
};

struct Stmt {
  Stmt(StmtType t, uint32_t p) : type(t), position(p) {}
  virtual ~Stmt() = default;

  const StmtType type;
  const uint32_t position;
};

struct TextStmt final : Stmt {
  TextStmt(uint32_t p, std::string t)
      : Stmt(StmtType::text, p), text(std::move(t)) {}
  std::string text;
};

struct Print final : Stmt {
  Print(uint32_t p, ExprPtr e)
      : Stmt(StmtType::print, p), value(std::move(e)) {}
  ExprPtr value;
};

struct If final : Stmt {
  explicit If(uint32_t p) : Stmt(StmtType::conditional, p) {}
  std::vector<std::pair<ExprPtr, Body>> branches;
  Body otherwise;
};

struct For final : Stmt {
  explicit For(uint32_t p) : Stmt(StmtType::loop, p) {}
  Target target;
  ExprPtr iterable;
  ExprPtr test;  // may be null
  Target test_target;
  Body body;
  Body otherwise;
  bool recursive = false;
  /// Reads `loop`, which lives in slot `loop_slot`.
  bool extended = false;
  uint32_t loop_slot = 0;
  Loads body_loads;
  Loads else_loads;
  Loads test_loads;
  Function function;  // of a recursive one
};

struct Assign final : Stmt {
  explicit Assign(uint32_t p) : Stmt(StmtType::assign, p) {}
  Target target;
  ExprPtr value;
};

struct AssignBlock final : Stmt {
  explicit AssignBlock(uint32_t p) : Stmt(StmtType::assign_block, p) {}
  Target target;
  ExprPtr filter;  // may be null
  Body body;
  Loads loads;
};

struct Parameter {
  std::string name;
  ExprPtr fallback;  // may be null
  uint32_t slot = 0;
};

/// A macro, or what `caller()` runs.
struct Macro {
  std::string name;  // empty for a caller
  std::vector<Parameter> parameters;
  Body body;
  Function function;
  Loads loads;
  /// Slots of `caller`, `kwargs` and `varargs` where the body reads them.
  int64_t caller_slot = -1;
  int64_t kwargs_slot = -1;
  int64_t varargs_slot = -1;
};

struct MacroStmt final : Stmt {
  explicit MacroStmt(uint32_t p) : Stmt(StmtType::macro, p) {}
  Macro macro;
  Target target;
};

struct CallBlock final : Stmt {
  explicit CallBlock(uint32_t p) : Stmt(StmtType::call_block, p) {}
  Macro caller;
  ExprPtr call;
};

struct FilterBlock final : Stmt {
  explicit FilterBlock(uint32_t p) : Stmt(StmtType::filter_block, p) {}
  ExprPtr filter;
  Body body;
  Loads loads;
};

struct With final : Stmt {
  explicit With(uint32_t p) : Stmt(StmtType::with, p) {}
  std::vector<std::pair<Target, ExprPtr>> values;
  Body body;
  Loads loads;
};

/// Renders in place, as there is nothing to inherit from, but sees only what
/// the template itself has set, and the variables around it if it is scoped.
struct Block final : Stmt {
  explicit Block(uint32_t p) : Stmt(StmtType::block, p) {}
  std::string name;
  bool scoped = false;
  bool required = false;
  Body body;
  Function function;
  Loads loads;
  std::vector<std::pair<std::string, VarRef>> around;
};

struct Autoescape final : Stmt {
  explicit Autoescape(uint32_t p) : Stmt(StmtType::autoescape, p) {}
  ExprPtr on;
  Body body;
  Loads loads;
};

struct Generation final : Stmt {
  explicit Generation(uint32_t p) : Stmt(StmtType::generation, p) {}
  Macro macro;
};

struct Jump final : Stmt {
  Jump(StmtType t, uint32_t p) : Stmt(t, p) {}
};

/// A statement that needs other templates: include, import, from, extends.
struct Unsupported final : Stmt {
  Unsupported(uint32_t p, std::string n)
      : Stmt(StmtType::unsupported, p), name(std::move(n)) {}
  std::string name;
  std::vector<ExprPtr> expressions;
};

/// A parsed template; immutable, may be run by several threads.
struct Program {
  std::string source;  // line ends normalised
  Body body;
  Function function;
  Loads loads;

  /// Line and column (in characters), from 1, of a position.
  std::pair<int, int> locate(uint32_t position) const;
};

}  // namespace mlxcel::chat
