#include <algorithm>
#include <cstring>

#include "mlxcel/weights/convert/gguf/gguf_tokenizer.h"
#include "mlxcel/weights/convert/gguf/json_text.h"

namespace mlxcel::convert {

namespace {

// The expressions of llama.cpp's src/llama-vocab.cpp (llm_tokenizer_bpe), in
// the form of the published tokenizer.json where its comments quote that.
constexpr const char* kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kSeedCoder =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr const char* kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kDeepseekLetters =
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)";
// Falcon's: punctuation, GPT-2's expression, numbers, then three digits.
constexpr const char* kFalconSteps =
    R"({"type":"Punctuation","behavior":"Contiguous"},)"
    R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,)"
    R"("use_regex":true},{"type":"Digits","individual_digits":false},)"
    R"({"type":"Split","pattern":{"Regex":"[0-9][0-9][0-9]"},)"
    R"("behavior":"Isolated","invert":false})";

// What stands before the conversion of bytes to characters.
enum class Cut { nothing, digits, expressions, falcon };

struct Known {
  std::vector<const char*> names;
  Cut cut;
  std::vector<const char*> expressions;
  bool gpt2_after;  // GPT-2's expression applies after the cut
  bool nfc = false;
  bool ignore_merges = false;
  bool add_bos = false;
};

const std::vector<Known>& known_pre_tokenizers() {
  static const std::vector<Known> known = {
      {{"gpt-2", "phi-2", "mellum", "gigachat", "a.x-4.0"},
       Cut::nothing,
       {},
       true},
      {{"smollm", "starcoder", "refact", "codeshell", "exaone", "minerva-7b"},
       Cut::digits,
       {},
       true},
      {{"llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "midm-2.0"},
       Cut::expressions,
       {kLlama3},
       false,
       false,
       true,
       true},
      {{"command-r"}, Cut::digits, {}, true, true},
      {{"mpt", "olmo"}, Cut::nothing, {}, true, true},
      {{"falcon"}, Cut::falcon, {}, false},
      {{"qwen35"}, Cut::expressions, {kQwen35}, false, true},
      {{"deepseek-llm"},
       Cut::expressions,
       {R"([\r\n])",
        kDeepseekLetters,
        R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)",
        R"(\s+$)",
        R"([一-龥ࠀ-一가-퟿]+)",
        R"(\p{N})"},
       false},
      {{"smaug-bpe", "dbrx"}, Cut::expressions, {kLlama3}, false},
      {{"qwen2"}, Cut::expressions, {kQwen2}, false, true},
      {{"deepseek-r1-qwen", "kormo", "f2llmv2", "megrez"},
       Cut::expressions,
       {kQwen2},
       false},
      {{"tekken"}, Cut::expressions, {kTekken}, false, false, true, true},
      {{"seed-coder"}, Cut::expressions, {kSeedCoder}, false},
      {{"deepseek-coder"},
       Cut::expressions,
       {R"([\r\n])",
        R"(\s?\p{L}+)",
        R"(\s?\p{P}+)",
        R"([一-龥ࠀ-一가-퟿]+)",
        R"(\p{N})"},
       false},
      {{"default"},
       Cut::expressions,
       {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", R"([0-9][0-9][0-9])"},
       false},
  };
  return known;
}

void append_step(std::string& out, const std::string& step) {
  if (out.back() != '[') {
    out += ',';
  }
  out += step;
}

std::string pre_tokenizer_json(const Known& known) {
  std::string json = R"({"type":"Sequence","pretokenizers":[)";
  if (known.cut == Cut::falcon) {
    return json + kFalconSteps + "]}";
  }
  if (known.cut == Cut::digits) {
    append_step(json, R"({"type":"Digits","individual_digits":true})");
  }
  for (const char* expression : known.expressions) {
    std::string step = R"({"type":"Split","pattern":{"Regex":)";
    append_json(step, expression);
    append_step(json, step + R"(},"behavior":"Isolated","invert":false})");
  }
  append_step(
      json,
      std::string(
          R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,)"
          R"("use_regex":)"
      ) + (known.gpt2_after ? "true}" : "false}")
  );
  return json + "]}";
}

}  // namespace

std::optional<PreTokenizer> pre_tokenizer(std::string_view name) {
  for (const Known& known : known_pre_tokenizers()) {
    for (const char* candidate : known.names) {
      if (name == candidate) {
        return PreTokenizer{
            .json = pre_tokenizer_json(known),
            .normalizer = known.nfc ? R"({"type":"NFC"})" : "null",
            .ignore_merges = known.ignore_merges,
            .add_bos = known.add_bos,
        };
      }
    }
  }
  return std::nullopt;
}

}  // namespace mlxcel::convert
