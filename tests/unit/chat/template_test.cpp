#include "mlxcel/chat/template.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "mlxcel/chat/conversation.h"

namespace mlxcel {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPlain =
    "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}"
    "{% if add_generation_prompt %}reply:{% endif %}";
constexpr const char* kImages =
    "{% for m in messages %}{% for c in m.content %}"
    "{% if c is string %}{{ c }}{% elif c.type == 'image' %}<img>"
    "{% else %}{{ c.text }}{% endif %}{% endfor %}{% endfor %}";

Json messages(const std::string& text) {
  return Json::parse(text, "messages");
}

RenderInput hello() {
  return RenderInput(to_messages({{"user", "Hi"}}));
}

std::string render(const char* source, const std::string& text) {
  RenderInput input(messages(text));
  input.add_generation_prompt = false;
  return ChatTemplate::from_source(source, "test").render(input);
}

class ChatTemplateFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string name =
        testing::UnitTest::GetInstance()->current_test_info()->name();
    dir_ = fs::temp_directory_path() / ("mlxcel_chat_" + name);
    fs::remove_all(dir_);
    fs::create_directories(dir_);
  }
  void TearDown() override {
    fs::remove_all(dir_);
  }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name) << text;
  }
  void write_config(const nlohmann::ordered_json& config) {
    write("tokenizer_config.json", config.dump());
  }
  std::string loaded() {
    auto found = ChatTemplate::load(dir_.string());
    return found ? found->render(hello()) : "nothing";
  }

  fs::path dir_;
};

TEST_F(ChatTemplateFiles, NoneIsNothing) {
  EXPECT_EQ(loaded(), "nothing");
  write_config({{"bos_token", "<s>"}, {"chat_template", ""}});
  write("chat_template.jinja", "");
  EXPECT_EQ(loaded(), "nothing");
}

TEST_F(ChatTemplateFiles, Order) {
  write("chat_template.json", R"({"chat_template": "json"})");
  EXPECT_EQ(loaded(), "json");
  write("chat_template.jinja", "jinja");
  EXPECT_EQ(loaded(), "jinja");
  write_config({{"chat_template", "config"}});
  EXPECT_EQ(loaded(), "config");
}

TEST_F(ChatTemplateFiles, ImagesFirst) {
  write_config({{"chat_template", "config"}});
  write("chat_template.jinja", kPlain);
  write(
      "chat_template.json",
      nlohmann::ordered_json({{"chat_template", kImages}}).dump()
  );
  EXPECT_EQ(loaded(), "Hi");
  write("chat_template.jinja", std::string("J") + kImages);
  EXPECT_EQ(loaded(), "JHi");
}

TEST_F(ChatTemplateFiles, NamedTemplates) {
  write_config(
      {{"chat_template",
        {{{"name", "default"}, {"template", "plain"}},
         {{"name", "tool_use"}, {"template", "{{ tools|length }} tools"}}}}}
  );
  auto found = ChatTemplate::load(dir_.string());
  ASSERT_TRUE(found);
  EXPECT_EQ(
      found->template_names(), (std::vector<std::string>{"default", "tool_use"})
  );
  EXPECT_EQ(found->render(hello()), "plain");
  RenderInput input = hello();
  input.tools = messages(R"([{"name": "f"}])");
  EXPECT_EQ(found->render(input), "1 tools");
  input.template_name = "default";
  EXPECT_EQ(found->render(input), "plain");
  input.template_name = "rag";
  try {
    found->render(input);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(
        error.message().find("\"rag\", only: default, tool_use"),
        std::string::npos
    ) << error.message();
  }
}

TEST_F(ChatTemplateFiles, NoDefaultTemplate) {
  write_config({{"chat_template", {{{"name", "rag"}, {"template", "plain"}}}}});
  auto found = ChatTemplate::load(dir_.string());
  ASSERT_TRUE(found);
  try {
    found->render(hello());
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("rag"), std::string::npos);
  }
}

TEST_F(ChatTemplateFiles, OfRepeatedNamesTheLastCounts) {
  write_config(
      {{"chat_template",
        {{{"name", "default"}, {"template", "first"}},
         {{"name", "default"}, {"template", "last"}}}}}
  );
  EXPECT_EQ(loaded(), "last");
}

TEST_F(ChatTemplateFiles, ProcessorConfigComesLast) {
  write("processor_config.json", R"({"chat_template": "processor"})");
  EXPECT_EQ(loaded(), "processor");
  write("chat_template.json", R"({"chat_template": "json"})");
  EXPECT_EQ(loaded(), "json");
  nlohmann::ordered_json config = {{"chat_template", kImages}};
  write("processor_config.json", config.dump());
  EXPECT_EQ(loaded(), "Hi");
}

TEST_F(ChatTemplateFiles, AdditionalTemplates) {
  fs::create_directories(dir_ / "additional_chat_templates");
  write("additional_chat_templates/rag.jinja", "rag");
  write("additional_chat_templates/notes.txt", "{{");
  auto found = ChatTemplate::load(dir_.string());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->template_names(), std::vector<std::string>{"rag"});
  EXPECT_THROW(found->render(hello()), Error);
  write("chat_template.jinja", "plain");
  EXPECT_EQ(loaded(), "plain");
  RenderInput input = hello();
  input.template_name = "rag";
  EXPECT_EQ(ChatTemplate::load(dir_.string())->render(input), "rag");
  write("additional_chat_templates/default.jinja", "other");
  EXPECT_EQ(loaded(), "other");
}

// Of a family whose checkpoints have no template, only where there is none.
TEST_F(ChatTemplateFiles, BuiltIn) {
  write("config.json", R"({"model_type": "deepseek_v32"})");
  EXPECT_EQ(
      loaded(), "<｜begin▁of▁sentence｜><｜User｜>Hi<｜Assistant｜><think>"
  );
  write("chat_template.jinja", "own");
  EXPECT_EQ(loaded(), "own");
  write_config({{"chat_template_type", "deepseek_v32"}});
  EXPECT_NE(loaded(), "own");
  fs::remove(dir_ / "tokenizer_config.json");
  fs::remove(dir_ / "chat_template.jinja");
  write("config.json", R"({"model_type": "llama"})");
  EXPECT_EQ(loaded(), "nothing");
  write("config.json", R"({"model_type": "kimi_k3"})");
  try {
    ChatTemplate::load(dir_.string());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
  }
}

TEST_F(ChatTemplateFiles, ArgumentsThatAreNoJson) {
  write("config.json", R"({"model_type": "deepseek_v32"})");
  RenderInput input(messages(
      R"([{"role": "user", "content": "a"}, {"role": "assistant",
      "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}])"
  ));
  try {
    ChatTemplate::load(dir_.string())->render(input);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(
        error.message().find("messages[1].tool_calls[0].function.arguments"),
        std::string::npos
    ) << error.message();
  }
}

TEST_F(ChatTemplateFiles, FileOfTheCaller) {
  write_config({{"bos_token", "<s>"}, {"chat_template", "own"}});
  write("mine.txt", "{{ bos_token }}mine");
  std::string file = (dir_ / "mine.txt").string();
  EXPECT_EQ(
      ChatTemplate::load_file(file, dir_.string()).render(hello()), "<s>mine"
  );
  EXPECT_EQ(ChatTemplate::load_file(file, "").render(hello()), "mine");
}

TEST_F(ChatTemplateFiles, Tokens) {
  write_config(
      {{"bos_token", {{"content", "<s>"}}},
       {"eos_token", "</s>"},
       {"pad_token", nullptr},
       {"unk_token", "<unk>"},
       {"chat_template",
        "{{ bos_token }}{{ eos_token }}{{ unk_token }}"
        "{{ pad_token is defined }}"}}
  );
  EXPECT_EQ(loaded(), "<s></s><unk>False");
  RenderInput input = hello();
  input.bos_token = "B";
  input.kwargs = messages(R"({"eos_token": "E"})");
  EXPECT_EQ(ChatTemplate::load(dir_.string())->render(input), "BE<unk>False");
}

TEST_F(ChatTemplateFiles, AbsentTokensAreEmpty) {
  write_config({{"chat_template", "[{{ bos_token + eos_token }}]"}});
  EXPECT_EQ(loaded(), "[]");
}

TEST_F(ChatTemplateFiles, MalformedFiles) {
  write("tokenizer_config.json", "{\"chat_template\": ");
  EXPECT_THROW(ChatTemplate::load(dir_.string()), Error);
  write_config({{"chat_template", 5}});
  EXPECT_THROW(ChatTemplate::load(dir_.string()), Error);
  fs::remove(dir_ / "tokenizer_config.json");
  write("chat_template.json", "{");
  EXPECT_EQ(loaded(), "nothing");
}

// pitfalls 58 and 64: a template that is no Jinja loads, and says where.
TEST_F(ChatTemplateFiles, ParseErrorsComeWithRendering) {
  write("chat_template.jinja", "{% if a %}\n  {% endfor %}");
  auto found = ChatTemplate::load(dir_.string());
  ASSERT_TRUE(found);
  try {
    found->render(hello());
    FAIL();
  } catch (const TemplateError& error) {
    EXPECT_EQ(error.kind(), TemplateError::Kind::syntax);
    EXPECT_EQ(error.line(), 2);
    EXPECT_EQ(error.column(), 6);
    EXPECT_NE(
        error.message().find("chat_template.jinja:2:6: not valid Jinja"),
        std::string::npos
    ) << error.message();
  }
}

TEST(ChatTemplate, Renders) {
  auto plain = ChatTemplate::from_source(kPlain, "test");
  EXPECT_EQ(plain.render(hello()), "user:Hi;reply:");
  EXPECT_EQ(plain.source(), kPlain);
  EXPECT_EQ(plain.name(), "test");
}

// pitfalls 62: a rejection carries the template's own message.
TEST(ChatTemplate, Rejection) {
  auto strict = ChatTemplate::from_source(
      "{% for m in messages %}{% if m.role == 'system' %}\n"
      "  {{ raise_exception('No ' ~ m.role) }}{% endif %}{% endfor %}",
      "T"
  );
  try {
    strict.render(RenderInput(to_messages({{"system", "x"}})));
    FAIL();
  } catch (const TemplateError& error) {
    EXPECT_EQ(error.kind(), TemplateError::Kind::rejected);
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_EQ(error.reason(), "No system");
    EXPECT_EQ(
        error.message(),
        "[chat template] T:2:21: the template rejects this conversation: "
        "No system"
    );
  }
}

TEST(ChatTemplate, NullMembersAreLeftOut) {
  EXPECT_EQ(
      render(
          "{{ messages[0].content is defined }}{{ messages[0].tool_calls }}",
          R"([{"role": "user", "content": null, "tool_calls": null}])"
      ),
      "False"
  );
}

TEST(ChatTemplate, ReasoningUnderBothNames) {
  for (const char* field : {"reasoning_content", "thinking", "reasoning"}) {
    EXPECT_EQ(
        render(
            "{{ messages[0].thinking }}{{ messages[0].reasoning_content }}",
            std::string(R"([{"role": "assistant", ")") + field + R"(": "R"}])"
        ),
        "RR"
    );
  }
}

TEST(ChatTemplate, ToolArgumentsKeepTheirOrder) {
  EXPECT_EQ(
      render(
          "{{ messages[0].args|tojson }}",
          R"([{"role": "a", "args": {"z": 1, "a": {"y": 2, "b": 3}}}])"
      ),
      R"({"z": 1, "a": {"y": 2, "b": 3}})"
  );
}

TEST(ChatTemplate, Thinking) {
  auto show = ChatTemplate::from_source(
      "{{ enable_thinking is defined }}{{ enable_thinking }}{{ thinking }}",
      "test"
  );
  RenderInput input = hello();
  EXPECT_EQ(show.render(input), "False");
  input.enable_thinking = true;
  EXPECT_EQ(show.render(input), "TrueTrue");
  // A template that asks whether `thinking` is defined gets it as well.
  auto asks = ChatTemplate::from_source(
      "{% if not thinking is defined %}none{% else %}{{ thinking }}{% endif %}",
      "test"
  );
  EXPECT_EQ(asks.render(input), "True");
  input.kwargs = messages(R"({"thinking": 5})");
  EXPECT_EQ(asks.render(input), "5");
  input.enable_thinking.reset();
  input.kwargs.reset();
  EXPECT_EQ(asks.render(input), "none");
}

TEST(ChatTemplate, ClosedThoughtChannel) {
  EXPECT_TRUE(ChatTemplate::from_source(
                  "{{ '<|channel>thought\\n<channel|>' }}", "gemma"
  )
                  .closes_thought_channel());
  EXPECT_FALSE(
      ChatTemplate::from_source(kPlain, "plain").closes_thought_channel()
  );
}

TEST(ChatTemplate, RendersImages) {
  EXPECT_TRUE(ChatTemplate::from_source(kImages, "i").renders_images());
  EXPECT_FALSE(ChatTemplate::from_source(kPlain, "p").renders_images());
  EXPECT_FALSE(ChatTemplate::from_source("{{", "broken").renders_images());
  EXPECT_FALSE(ChatTemplate::from_source("constant", "c").renders_images());
}

TEST(ChatTemplate, ContinuesTheLastMessage) {
  auto continued = [](const char* source, const std::string& text) {
    RenderInput input(messages(text));
    input.add_generation_prompt = false;
    input.continue_final_message = true;
    return ChatTemplate::from_source(source, "test").render(input);
  };
  const char* talk =
      R"([{"role": "user", "content": "a"},
          {"role": "assistant", "content": "The answer "}])";
  EXPECT_EQ(continued(kPlain, talk), "user:a;assistant:The answer ");
  EXPECT_EQ(
      continued("{{ messages[-1].content|trim }}<end>", talk), "The answer"
  );
  EXPECT_EQ(
      continued(
          "{{ messages[-1].content[1].text }}<end>",
          R"([{"role": "assistant", "content":
               [{"type": "image"}, {"type": "text", "text": "x"}]}])"
      ),
      "x"
  );
  // The text that goes on is found, but no template that reads it.
  EXPECT_THROW(continued("{{ messages[-1] }}", talk), Error);
  EXPECT_THROW(continued("nothing", talk), Error);
  EXPECT_THROW(continued(kPlain, R"([{"role": "assistant"}])"), Error);
}

TEST(ChatTemplate, ContinuesTheReasoning) {
  const char* talk =
      R"([{"role": "assistant", "content": "", "thinking": "I"}])";
  for (const char* read : {"thinking", "reasoning_content"}) {
    for (const char* asked : {"thinking", "reasoning_content"}) {
      RenderInput input(messages(talk));
      input.add_generation_prompt = false;
      input.continue_final_message = true;
      input.continued_member = asked;
      std::string source = std::string("<think>{{ messages[0].") + read +
                           " }}</think>{{ messages[0].content }}";
      EXPECT_EQ(
          ChatTemplate::from_source(source, "T").render(input), "<think>I"
      );
      input.continued_member = "reasoning";
      EXPECT_THROW(ChatTemplate::from_source(source, "T").render(input), Error);
    }
  }
}

TEST(ChatTemplate, Documents) {
  auto show = ChatTemplate::from_source(
      "{{ documents is none }}{% for d in documents or [] %}{{ d.title }}"
      "{% endfor %}",
      "test"
  );
  RenderInput input = hello();
  EXPECT_EQ(show.render(input), "True");
  input.documents = messages(R"([{"title": "a"}, {"title": "b"}])");
  EXPECT_EQ(show.render(input), "Falseab");
  input.documents = messages(R"([{"title": "a"}, "b"])");
  try {
    show.render(input);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(
        error.message(),
        "[chat template] documents[1]: expected an object, got \"b\""
    );
  }
}

// The spans are those of transformers' return_assistant_tokens_mask, but of
// bytes; a block inside a macro counts from where the text was.
TEST(ChatTemplate, SpansOfWhatWasGenerated) {
  auto spans = [](const char* source) {
    RenderedChat chat =
        ChatTemplate::from_source(source, "T").render_with_spans(hello());
    std::vector<std::string> parts;
    for (const TextSpan& span : chat.generated) {
      parts.push_back(chat.text.substr(span.begin, span.end - span.begin));
    }
    return parts;
  };
  using Parts = std::vector<std::string>;
  EXPECT_EQ(
      spans("é{% for x in [1, 2] %}ü{% generation %}<ö{{ x }}>"
            "{% endgeneration %}{% endfor %}ß"),
      (Parts{"<ö1>", "<ö2>"})
  );
  EXPECT_EQ(
      spans("a{% generation %}b{% generation %}c{% endgeneration %}d"
            "{% endgeneration %}"),
      (Parts{"b", "bcd"})
  );
  EXPECT_EQ(
      spans("{% macro m() %}xy{% generation %}é{% endgeneration %}"
            "{% endmacro %}a{{ m() }}"),
      (Parts{"x"})
  );
  EXPECT_EQ(
      spans("a{% set x %}{% generation %}bcd{% endgeneration %}{% endset %}"),
      (Parts{""})
  );
  RenderInput input = hello();
  input.add_generation_prompt = false;
  input.continue_final_message = true;
  EXPECT_THROW(
      ChatTemplate::from_source(kPlain, "T").render_with_spans(input), Error
  );
}

TEST(ChatTemplate, InputsOfTheWrongShape) {
  auto plain = ChatTemplate::from_source(kPlain, "test");
  auto code_of = [&](const RenderInput& input) {
    try {
      plain.render(input);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  };
  for (const char* text : {"[]", "{}", "5", "[5]", R"(["a"])"}) {
    EXPECT_EQ(code_of(RenderInput(messages(text))), ErrorCode::usage) << text;
  }
  RenderInput input = hello();
  input.tools = messages("[5]");
  EXPECT_EQ(code_of(input), ErrorCode::usage);
  input = hello();
  input.kwargs = messages("[]");
  EXPECT_EQ(code_of(input), ErrorCode::usage);
  input.kwargs = messages(R"({"messages": []})");
  EXPECT_EQ(code_of(input), ErrorCode::usage);
  input = hello();
  input.continue_final_message = true;
  EXPECT_EQ(code_of(input), ErrorCode::usage);
}

TEST(ChatTemplate, RendersOnSeveralThreads) {
  auto plain = ChatTemplate::from_source(
      "{% macro m(x) %}{{ 'Grüße'|upper }}{{ x }}{% endmacro %}"
      "{% for i in range(200) %}{{ m(i) }}{{ 'aé'|length }}{% endfor %}",
      "test"
  );
  std::string expected = plain.render(hello());
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string& text : texts) {
    threads.emplace_back([&] { text = plain.render(hello()); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::string& text : texts) {
    EXPECT_EQ(text, expected);
  }
}

TEST(Conversation, PlainPrompt) {
  std::vector<ChatMessage> talk = {
      {"system", "Be brief."},
      {"user", "Hi"},
      {"assistant", "Hello"},
      {"user", "Bye"}};
  EXPECT_EQ(
      plain_prompt(talk),
      "Be brief.\nUser: Hi\nAssistant: Hello\nUser: Bye\nAssistant:"
  );
  EXPECT_EQ(plain_prompt({{"user", "Hi"}}, false), "User: Hi\n");
  EXPECT_EQ(joined_prompt(talk), "Be brief.\nHi\nHello\nBye");
}

}  // namespace

}  // namespace mlxcel
