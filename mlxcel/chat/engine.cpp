#include "mlxcel/chat/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "mlxcel/chat/fault.h"
#include "mlxcel/chat/lexer.h"
#include "mlxcel/chat/parser.h"
#include "mlxcel/chat/template_error.h"
#include "mlxcel/core/utf8.h"

namespace mlxcel {

namespace {

using ErrorKind = TemplateError::Kind;

constexpr size_t kMaxReason = 4096;

// Text of a template in a message: cut, control characters shown.
std::string presentable(const std::string& text) {
  size_t end = std::min(text.size(), kMaxReason);
  while (end < text.size() && end > 0 && (text[end] & 0xc0) == 0x80) {
    --end;  // not inside a character
  }
  std::string out;
  for (size_t i = 0; i < end; ++i) {
    auto c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
      out += fmt::format("\\x{:02x}", c);
    } else {
      out += text[i];
    }
  }
  return end < text.size() ? out + "..." : out;
}

std::string describe(
    ErrorKind kind,
    const std::string& name,
    int line,
    int column,
    const std::string& reason
) {
  const char* what = "";
  switch (kind) {
    case ErrorKind::syntax:
      what = "not valid Jinja: ";
      break;
    case ErrorKind::rejected:
      what = "the template rejects this conversation: ";
      break;
    case ErrorKind::limit:
      what = "stopped: ";
      break;
    case ErrorKind::failure:
      break;
  }
  return fmt::format(
      "[chat template] {}:{}:{}: {}{}",
      name,
      line,
      column,
      what,
      presentable(reason)
  );
}

}  // namespace

TemplateError::TemplateError(
    Kind kind, const std::string& name, int line, int column, std::string reason
)
    : Error(
          kind == ErrorKind::rejected ? ErrorCode::usage
                                      : ErrorCode::invalid_input,
          describe(kind, name, line, column, reason)
      ),
      kind_(kind),
      line_(line),
      column_(column),
      reason_(std::move(reason)) {}

namespace chat {

std::shared_ptr<const Program> compile(
    std::string_view source, const std::string& name
) {
  constexpr size_t kMaxSource = size_t{4} << 20;
  if (source.size() > kMaxSource) {
    throw TemplateError(
        ErrorKind::limit, name, 1, 1, "the template is larger than 4 MiB"
    );
  }
  if (auto offset = find_invalid_utf8(source)) {
    Program at;
    at.source = source.substr(0, *offset);
    auto [line, column] = at.locate(static_cast<uint32_t>(at.source.size()));
    throw TemplateError(
        ErrorKind::syntax, name, line, column, "not valid UTF-8"
    );
  }
  try {
    return parse_template(source);
  } catch (const SyntaxFault& fault) {
    Program at;
    at.source = normalize_source(source);
    auto [line, column] = at.locate(fault.position);
    throw TemplateError(ErrorKind::syntax, name, line, column, fault.message);
  }
}

std::string render(
    const Program& program,
    const std::string& name,
    const ContextMaker& context,
    const TemplateLimits& limits,
    std::optional<int64_t> now,
    std::vector<GeneratedPart>* generated
) {
  Budget budget(limits);
  uint32_t position = 0;
  try {
    Context variables = context.make();
    Interpreter interpreter(program, variables, now);
    try {
      std::string text = interpreter.run();
      if (generated) {
        *generated = interpreter.generated();
      }
      return text;
    } catch (const Fault&) {
      position = interpreter.position();
      throw;
    }
  } catch (const Fault& fault) {
    auto [line, column] = program.locate(position);
    ErrorKind kind = fault.kind() == Fault::Kind::rejected ? ErrorKind::rejected
                     : fault.kind() == Fault::Kind::limit  ? ErrorKind::limit
                                                           : ErrorKind::failure;
    throw TemplateError(kind, name, line, column, fault.message());
  } catch (const std::bad_alloc&) {
    fail(
        ErrorCode::out_of_memory,
        fmt::format("[chat template] {}: out of memory", name)
    );
  }
}

}  // namespace chat

}  // namespace mlxcel
