#include "apps/repl.h"

#include <fmt/format.h>

#include <cstdio>
#include <new>
#include <optional>
#include <utility>

#include "apps/interrupt.h"
#include "apps/output.h"
#include "apps/prompt_source.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/os.h"

namespace mlxcel::apps {

namespace {

constexpr int kStandardInput = 0;
constexpr int kStandardOutput = 1;
constexpr size_t kLineLimit = 256 << 20;
constexpr const char* kFence = "\"\"\"";
constexpr const char* kHelp =
    "/bye ends, /clear forgets the conversation, /? shows this.\n"
    "\"\"\" opens and closes a message of several lines.\n";

// Lines of the user, with a prompt on a terminal.
class Input {
 public:
  Input()
      : terminal_(os::is_terminal(kStandardInput)),
        status_(
            terminal_ && os::is_terminal(kStandardOutput) ? stdout : stderr
        ) {
    if (terminal_) {
      line_scope_.emplace();
    }
  }

  bool terminal() const {
    return terminal_;
  }

  /// To where replies don't go: standard output may be a file.
  void say(const std::string& text) const {
    fmt::print(status_, "{}", text);
    std::fflush(status_);
  }

  /// The next message; false at the end of the input. An interrupt drops what
  /// was typed of it.
  bool next(std::string& message) {
    while (true) {
      Line line = read_message(message);
      if (line != Line::interrupted) {
        return line == Line::whole;
      }
      say("\n(/bye or Ctrl-D ends)\n");
    }
  }

 private:
  enum class Line { whole, interrupted, end };

  Line read_message(std::string& message) {
    Line line = read_line(">>> ", message);
    if (line != Line::whole || !message.starts_with(kFence)) {
      return line;
    }
    message.erase(0, 3);
    std::string more;
    while (message.find(kFence) == std::string::npos) {
      line = read_line("... ", more);
      if (line != Line::whole) {
        return line == Line::end ? Line::whole : line;
      }
      message += (message.empty() ? "" : "\n") + more;
    }
    message.erase(message.find(kFence));
    if (message.ends_with('\n')) {
      message.pop_back();
    }
    return Line::whole;
  }

  Line read_line(const char* mark, std::string& text) {
    if (terminal_) {
      say(mark);
    }
    while (true) {
      if (size_t end = buffer_.find('\n'); end != std::string::npos) {
        text = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return Line::whole;
      }
      std::optional<size_t> got = read_more();
      if (!got) {
        buffer_.clear();
        return Line::interrupted;
      }
      if (*got == 0) {
        text = std::exchange(buffer_, "");
        return text.empty() ? Line::end : Line::whole;
      }
    }
  }

  // Nothing if an interrupt came first.
  std::optional<size_t> read_more() {
    constexpr const char* kName = "standard input";
    if (terminal_ && interrupted().exchange(false)) {
      return std::nullopt;
    }
    char piece[4096];
    std::optional<size_t> got =
        os::read_some(kStandardInput, piece, sizeof(piece), kName);
    if (!got) {
      interrupted().store(false);
      return got;
    }
    buffer_.append(piece, *got);
    if (buffer_.size() > kLineLimit) {
      fail(
          ErrorCode::invalid_input,
          fmt::format("[prompt] {}: a line above {} bytes", kName, kLineLimit)
      );
    }
    return got;
  }

  bool terminal_;
  std::FILE* status_;
  std::optional<LineScope> line_scope_;
  std::string buffer_;
};

class Chat {
 public:
  Chat(ChatSession& session, const std::string& system)
      : session_(session), system_(system) {
    clear();
  }

  void clear() {
    conversation_ = opening(system_);
  }

  void turn(const Input& input, const std::string& message) {
    std::vector<ChatMessage> next = conversation_;
    next.push_back({"user", checked_text(message, "message")});
    GenerateResult result = session_.reply(next, &write_output);
    write_output("\n");
    if (result.reason == FinishReason::cancelled) {
      input.say("[interrupted]\n");
    }
    input.say(describe_speed(result) + "\n");
    next.push_back({"assistant", result.text});
    conversation_ = std::move(next);
  }

 private:
  ChatSession& session_;
  std::string system_;
  std::vector<ChatMessage> conversation_;
};

void greet(const Input& input, const ChatSession& session) {
  if (input.terminal()) {
    input.say(describe_load(session) + "\n" + kHelp);
  } else {
    input.say("reading messages from standard input, one a line\n");
  }
  if (session.lacks_template()) {
    fmt::print(
        stderr,
        "note: the model has no chat template (a base model); it is given "
        "User: and Assistant: lines\n"
    );
  }
}

}  // namespace

void chat_loop(ChatSession& session, const std::string& system) {
  Input input;
  Chat chat(session, system);
  greet(input, session);
  std::string message;
  while (input.next(message)) {
    if (message == "/bye") {
      return;
    }
    if (message == "/clear") {
      chat.clear();
      input.say("The conversation is empty.\n");
    } else if (message == "/?" || message == "/help") {
      input.say(kHelp);
    } else if (message.starts_with("/")) {
      input.say("Unknown command " + quote(message) + "; /? lists them.\n");
    } else if (!message.empty()) {
      try {
        chat.turn(input, message);
      } catch (const Error& error) {
        // A message that doesn't fit or that the template rejects is this
        // turn's failure, not the conversation's.
        if (!input.terminal()) {
          throw;
        }
        input.say("error: " + error.message() + "\n");
      } catch (const std::bad_alloc&) {
        if (!input.terminal()) {
          throw;
        }
        input.say("error: [memory] out of memory\n");
      }
    }
  }
  input.say("\nBye.\n");
}

}  // namespace mlxcel::apps
