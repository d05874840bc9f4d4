#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mlxcel/chat/arguments.h"
#include "mlxcel/chat/ast.h"
#include "mlxcel/chat/budget.h"
#include "mlxcel/chat/filters.h"
#include "mlxcel/chat/value.h"

namespace mlxcel::chat {

/// The variables that a rendering starts with; they hide the global functions.
using Context = std::vector<std::pair<std::string, Value>>;

/// What a scoped block sees beside the context: the variables around it.
struct Surroundings {
  Context variables;
  std::shared_ptr<const Surroundings> outer;
};

/// The variables of one running function.
struct Activation {
  std::vector<Value> slots;
  Activation* outer = nullptr;
  std::shared_ptr<const Surroundings> surroundings;
  /// A macro was made in it, so it stays until the end.
  bool captured = false;
};

struct Loop;

/// What a `generation` block made.
struct GeneratedPart {
  size_t begin;   // in bytes: how long the result was until then
  size_t length;  // in code points
};

/// Runs a parsed template once, on one thread, under an active Budget.
class Interpreter {
 public:
  /// `now` is what strftime_now shows, in seconds since 1970; default: the
  /// clock's.
  Interpreter(
      const Program& program,
      const Context& context,
      std::optional<int64_t> now = std::nullopt
  );
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  /// The rendered text. Throws Fault; position() then says where.
  std::string run();
  uint32_t position() const {
    return position_;
  }
  const std::vector<GeneratedPart>& generated() const {
    return generated_;
  }

  // For filters, tests, methods and functions.

  Value call(const Value& callee, Arguments arguments);
  /// `object[key]` and `object.name` with Jinja's rules: what is absent is
  /// undefined, the attributes of Python objects are partly hidden.
  Value get_item(const Value& object, const Value& key);
  Value get_attribute(const Value& object, const Value& name);
  /// An attribute proper (a method, a name of a namespace), not an item; a
  /// missing value if there is none.
  Value find_attribute(const Value& object, const Value& name);
  /// By name, as select() and map() do. Throw Fault if unknown.
  Value apply_filter(
      std::string_view name, const Value& input, const Arguments& arguments
  );
  bool apply_test(
      std::string_view name, const Value& input, const Arguments& arguments
  );
  std::optional<int64_t> now() const {
    return now_;
  }
  /// Makes a namespace that lives to the end of the run.
  Value make_space(const std::vector<std::pair<std::string, Value>>& attributes
  );
  /// Keeps an object whose content may change until the end of the run, and
  /// empties it then.
  void keep(std::shared_ptr<Loop> loop);

  // For the objects that run parts of the template.

  std::string run_macro(const Macro& macro, Activation* outer, Arguments& all);
  std::string run_recursive_loop(
      const For& node, const Value& iterable, Activation* outer, int depth
  );
  /// The next item of a loop that passes its `if`, judged in `frame`.
  bool next_filtered(
      const For& node, Cursor& cursor, Activation* frame, Value& item
  );

 private:
  enum class Flow { next, break_loop, continue_loop };

  class Nest;
  class CallLevel;
  class Capture;
  class Entry;
  class Frame;

  // Statements.
  Flow execute(const Body& body);
  Flow execute(const Stmt& stmt);
  Flow execute_if(const If& node);
  Flow execute_loop(const For& node, const Value& iterable, int depth);
  Flow loop_body(const For& node, const Value& item, bool& completed);
  Flow execute_assign_block(const AssignBlock& node);
  Flow execute_filter_block(const FilterBlock& node);
  Flow execute_with(const With& node);
  Flow execute_autoescape(const Autoescape& node);
  void execute_call_block(const CallBlock& node);
  void execute_block(const Block& node);
  void execute_generation(const Generation& node);
  void print(const Value& value);
  void assign(const Target& target, const Value& value);
  void check_target(const Target& target);
  void set_exported(std::string_view name, const Value& value);
  void set_member(Space& space, const std::string& name, const Value& value);
  void enter(const Loads& loads);
  Value make_macro(const Macro& macro);
  void capture_frame();
  void bind(const Macro& macro, Activation& into, Arguments& arguments);
  Value& variable(VarRef ref);
  Value find_global(const Value& name) const;

  // Expressions.
  Value evaluate(const Expr& expr);
  Value evaluate_name(const Name& node);
  std::vector<Value> evaluate_items(const Group& node);
  Value evaluate_dict(const DictExpr& node);
  Value evaluate_conditional(const Conditional& node);
  Value evaluate_logical(const Binary& node);
  Value evaluate_binary(const Binary& node);
  Value evaluate_unary(const Unary& node);
  Value evaluate_compare(const Compare& node);
  Value evaluate_concat(const Group& node);
  Value evaluate_slice(const Slice& node);
  Value evaluate_call(const Call& node, const Value* caller = nullptr);
  Value evaluate_filter(const Filter& node, const Value* block_text = nullptr);
  Value evaluate_test(const Test& node);
  Arguments evaluate_arguments(const CallArguments& node);

  const Program& program_;
  const Context& context_;
  Context exported_;  // what the template itself has set
  std::optional<int64_t> now_;
  Budget& budget_;
  std::string* out_ = nullptr;
  const std::string* result_ = nullptr;
  std::vector<GeneratedPart> generated_;
  Activation* frame_ = nullptr;
  uint32_t position_ = 0;
  int levels_ = 0;
  int calls_ = 0;
  std::deque<std::unique_ptr<Activation>> captured_;
  std::vector<std::shared_ptr<Space>> spaces_;
  std::vector<std::shared_ptr<Loop>> loops_;
};

/// The global function or object of that name ("range"), or a missing value.
Value find_global_function(std::string_view name);

}  // namespace mlxcel::chat
