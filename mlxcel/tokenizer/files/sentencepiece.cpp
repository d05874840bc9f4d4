#include <fmt/format.h>

#include "mlxcel/core/error.h"
#include "mlxcel/tokenizer/files/file_formats.h"
#include "mlxcel/tokenizer/files/part_recipes.h"
#include "mlxcel/tokenizer/normalize/sentencepiece_text.h"

namespace mlxcel::tokenizer {

namespace {

using Type = SentencePieceFile::Type;

/// Control pieces are never looked for in a text, but can be left out when it
/// is decoded; what the configuration adds is looked for.
std::vector<AddedToken> added_tokens(
    const SentencePieceFile& file, const TokenizerConfig& config
) {
  std::vector<AddedToken> tokens;
  for (size_t id = 0; id < file.pieces.size(); ++id) {
    if (file.pieces[id].type == Type::control) {
      AddedToken token;
      token.content = file.pieces[id].text;
      token.special = true;
      token.found = false;
      token.id = static_cast<int32_t>(id);
      tokens.push_back(std::move(token));
    }
  }
  for (AddedToken token : config.added_tokens) {
    token.normalized = false;
    tokens.push_back(std::move(token));
  }
  return tokens;
}

/// Of a piece of the model or a token of the configuration.
int32_t special_id(
    const Parts& parts,
    const std::string& piece,
    const std::string& token,
    const std::string& path
) {
  const Vocab& vocab = parts.model->vocab();
  for (const std::string& text : {piece, token}) {
    int32_t id = vocab.find_or_none(text);
    id = id < 0 ? parts.added_tokens.find(text) : id;
    if (id >= 0) {
      return id;
    }
  }
  fail(
      ErrorCode::invalid_input,
      fmt::format(
          "[{}] {} is to be added to each text, but is no piece",
          path,
          quote(piece)
      )
  );
}

}  // namespace

Parts read_sentencepiece(
    const std::string& path, const TokenizerConfig& config
) {
  SentencePieceFile file = read_sentencepiece_file(path);
  if (config.add_prefix_space == false) {
    file.add_dummy_prefix = false;
  }
  auto model = SentencePieceModel::make(file);
  Parts parts;
  bool at_start_only = config.legacy == false;
  parts.normalizer =
      make_sentencepiece_normalizer(file, path, *model, at_start_only);
  parts.decoder = make_sentencepiece_decoder(file, *model);
  parts.model = std::move(model);
  parts.added_tokens = AddedTokens(
      added_tokens(file, config), parts.model->vocab(), parts.normalizer.get()
  );
  std::optional<int32_t> bos;
  std::optional<int32_t> eos;
  if (config.add_bos_token.value_or(false)) {
    bos = special_id(parts, file.bos_piece, config.bos_token, path);
  }
  if (config.add_eos_token.value_or(false)) {
    eos = special_id(parts, file.eos_piece, config.eos_token, path);
  }
  parts.post_processor = put_around(bos, eos);
  return parts;
}

}  // namespace mlxcel::tokenizer
