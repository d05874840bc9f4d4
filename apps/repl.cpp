#include "apps/repl.h"

#include <fmt/format.h>

#include <cstdio>
#include <iostream>

#include "mlxcel/core/error.h"
#include "mlxcel/core/os.h"
#include "mlxcel/core/utf8.h"

namespace mlxcel::apps {

namespace {

constexpr int kStandardInput = 0;
constexpr const char* kFence = "\"\"\"";
constexpr const char* kHelp =
    "/bye ends, /clear forgets the conversation, /? shows this.\n"
    "\"\"\" opens and closes a message of several lines.\n";

// Lines of the user, with a prompt on a terminal.
class Input {
 public:
  Input() : terminal_(os::is_terminal(kStandardInput)) {}

  bool terminal() const {
    return terminal_;
  }

  /// The next message; false at the end of the input.
  bool next(std::string& message) {
    if (!line(">>> ", message)) {
      return false;
    }
    if (!message.starts_with(kFence)) {
      return true;
    }
    message.erase(0, 3);
    std::string more;
    while (message.find(kFence) == std::string::npos) {
      if (!line("... ", more)) {
        return true;
      }
      message += (message.empty() ? "" : "\n") + more;
    }
    message.erase(message.find(kFence));
    return true;
  }

 private:
  bool line(const char* mark, std::string& text) {
    if (terminal_) {
      fmt::print("{}", mark);
      std::fflush(stdout);
    }
    return static_cast<bool>(std::getline(std::cin, text));
  }

  bool terminal_;
};

void emit(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void say(const Input& input, const std::string& text) {
  std::FILE* to = input.terminal() ? stdout : stderr;
  fmt::print(to, "{}", text);
}

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
    if (find_invalid_utf8(message)) {
      say(input, "The message is not valid UTF-8.\n");
      return;
    }
    std::vector<ChatMessage> next = conversation_;
    next.push_back({"user", message});
    GenerateResult result = session_.reply(next, &emit);
    emit("\n");
    if (result.reason == FinishReason::cancelled) {
      say(input, "[interrupted]\n");
    }
    say(input, describe_speed(result) + "\n");
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
    fmt::print("{}\n{}", describe_load(session), kHelp);
  } else {
    fmt::print(stderr, "reading messages from standard input, one a line\n");
  }
  if (!session.has_template()) {
    fmt::print(
        stderr,
        "note: the model has no chat template (a base model); messages are "
        "given as they are or as User: / Assistant: lines\n"
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
      say(input, "The conversation is empty.\n");
    } else if (message == "/?" || message == "/help") {
      say(input, kHelp);
    } else if (message.starts_with("/")) {
      say(input, "Unknown command " + quote(message) + "; /? lists them.\n");
    } else if (!message.empty()) {
      try {
        chat.turn(input, message);
      } catch (const Error& error) {
        // A message that doesn't fit or that the template rejects is this
        // turn's failure, not the conversation's.
        if (!input.terminal()) {
          throw;
        }
        fmt::print("error: {}\n", error.message());
      }
    }
  }
  say(input, "\nBye.\n");
}

}  // namespace mlxcel::apps
