#include "mlxcel/tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "mlxcel/core/error.h"
#include "mlxcel/core/utf8.h"
#include "mlxcel/tokenizer/files/tokenizer_json.h"
#include "mlxcel/tokenizer/tokenizer_directory.h"
#include "mlxcel/tokenizer/tokenizer_impl.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel {

namespace {

using tokenizer::Model;
using tokenizer::Piece;
using tokenizer::Text;
using AddedParts = std::vector<tokenizer::AddedTokens::Part>;

constexpr size_t max_text = size_t{1} << 31;  // bytes
constexpr size_t max_idle_scratches = 16;

}  // namespace

/// Collects ids.
class Tokenizer::Impl::Ids : public Consumer {
 public:
  Ids(const Model& model, Model::Scratch& scratch, std::vector<int32_t>& ids)
      : model_(model), scratch_(scratch), ids_(ids) {}

  void take(const Piece& piece) override {
    model_.encode(piece.view(), scratch_, ids_);
  }
  void take_added(int32_t id, std::string_view, const ByteRange&) override {
    ids_.push_back(id);
  }

 private:
  const Model& model_;
  Model::Scratch& scratch_;
  std::vector<int32_t>& ids_;
};

Tokenizer::Impl::Lease::Lease(const Impl& owner) : owner_(owner) {
  {
    std::lock_guard lock(owner.mutex);
    if (!owner.scratches.empty()) {
      scratch_ = std::move(owner.scratches.back());
      owner.scratches.pop_back();
    }
  }
  if (!scratch_) {
    scratch_ = owner.parts.model->make_scratch();
  }
}

Tokenizer::Impl::Lease::~Lease() {
  std::lock_guard lock(owner_.mutex);
  if (owner_.scratches.size() < max_idle_scratches) {
    owner_.scratches.push_back(std::move(scratch_));
  }
}

Tokenizer::Impl::Impl(
    tokenizer::Parts tokenizer_parts, tokenizer::TokenizerConfig facts
)
    : parts(std::move(tokenizer_parts)), config(std::move(facts)) {
  scratches.reserve(max_idle_scratches);
}

std::optional<std::string_view> Tokenizer::Impl::token(int32_t id) const {
  if (const tokenizer::AddedToken* added = parts.added_tokens.find(id)) {
    return added->content;
  }
  const tokenizer::Vocab& vocab = parts.model->vocab();
  return vocab.has(id) ? std::optional(vocab.token(id)) : std::nullopt;
}

std::optional<int32_t> Tokenizer::Impl::find_id(std::string_view token) const {
  int32_t id = parts.added_tokens.find(token);
  if (id < 0) {
    id = parts.model->vocab().find_or_none(token);
  }
  return id < 0 ? std::nullopt : std::optional(id);
}

void Tokenizer::Impl::encode_text(
    std::string_view text, FindAdded find, std::vector<int32_t>& ids
) const {
  Lease lease(*this);
  Ids sink(*parts.model, lease.scratch(), ids);
  cut_text(text, find, parts.pre_tokenizer.needs_origins(), sink);
}

void Tokenizer::Impl::cut_text(
    std::string_view text, FindAdded find, bool tracked, Consumer& consumer
) const {
  if (!parts.chunks) {
    cut_chunk(text, 0, find, tracked, consumer);
    return;
  }
  for (std::string_view chunk : tokenizer::cut_text(text, *parts.chunks)) {
    auto offset = static_cast<size_t>(chunk.data() - text.data());
    cut_chunk(chunk, offset, find, tracked, consumer);
  }
}

void Tokenizer::Impl::cut_chunk(
    std::string_view text,
    size_t offset,
    FindAdded find,
    bool tracked,
    Consumer& consumer
) const {
  AddedParts raw;
  AddedParts inner;
  parts.added_tokens.cut(text, false, find, raw);
  for (const auto& part : raw) {
    std::string_view view = text.substr(part.begin, part.end - part.begin);
    if (part.id >= 0) {
      ByteRange bytes{offset + part.begin, offset + part.end};
      consumer.take_added(part.id, view, bytes);
      continue;
    }
    Text segment(view, offset + part.begin, tracked);
    if (parts.normalizer) {
      parts.normalizer->apply(segment);
    }
    inner.clear();
    parts.added_tokens.cut(segment.view(), true, find, inner);
    for (const auto& piece : inner) {
      if (piece.id < 0) {
        parts.pre_tokenizer.run({&segment, piece.begin, piece.end}, consumer);
        continue;
      }
      ByteRange bytes{0, 0};
      if (tracked) {
        bytes.begin = segment.origin(piece.begin).begin;
        bytes.end = segment.origin(piece.end - 1).end;
      }
      consumer.take_added(
          piece.id,
          segment.view().substr(piece.begin, piece.end - piece.begin),
          bytes
      );
    }
  }
}

void Tokenizer::Impl::repair_bos() {
  bool gemma = config.tokenizer_class == "GemmaTokenizer" ||
               config.tokenizer_class == "GemmaTokenizerFast";
  if (!config.add_bos_token.value_or(gemma) || config.bos_token.empty()) {
    return;
  }
  std::optional<int32_t> bos = find_id(config.bos_token);
  if (bos && parts.post_processor.first_added() != bos) {
    parts.post_processor.prepend(*bos);
  }
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  impl_->repair_bos();
  impl_->added_bos = impl_->parts.post_processor.first_added();
}

Tokenizer::~Tokenizer() = default;

std::shared_ptr<const Tokenizer> Tokenizer::load(const std::string& model_dir) {
  tokenizer::TokenizerConfig config =
      tokenizer::read_tokenizer_config(model_dir);
  tokenizer::Parts parts =
      tokenizer::read_tokenizer_directory(model_dir, config);
  return std::shared_ptr<const Tokenizer>(
      new Tokenizer(std::make_unique<Impl>(std::move(parts), std::move(config)))
  );
}

std::shared_ptr<const Tokenizer> Tokenizer::from_json(const std::string& path) {
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::make_unique<Impl>(
      tokenizer::read_tokenizer_json(path), tokenizer::TokenizerConfig{}
  )));
}

void check_text(std::string_view text) {
  if (text.size() > max_text) {
    fail(ErrorCode::invalid_input, "[tokenizer] the text exceeds 2 GB");
  }
  if (!utf8::valid(text)) {
    fail(
        ErrorCode::invalid_input,
        fmt::format(
            "[tokenizer] the text is not valid UTF-8 at byte {}",
            find_invalid_utf8(text).value_or(0)
        )
    );
  }
}

std::vector<int32_t> Tokenizer::encode(
    std::string_view text, EncodeOptions options
) const {
  if (options.truncate || options.pad) {
    return encode_with_offsets(text, options).ids;
  }
  check_text(text);
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4 + 8);
  impl_->encode_text(text, options.find, ids);
  impl_->parts.post_processor.apply(ids, options.add_special);
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special)
    const {
  std::string text;
  text.reserve(ids.size() * 4);
  tokenizer::DecodeStream stream = impl_->parts.decoder.stream(false);
  for (int32_t id : ids) {
    std::optional<std::string_view> token = impl_->token(id);
    if (token && !(skip_special && is_special(id))) {
      stream.push(*token, text);
    }
  }
  stream.finish(text);
  return text;
}

size_t Tokenizer::vocab_size() const {
  return std::max(
      impl_->parts.model->vocab().id_limit(),
      impl_->parts.added_tokens.id_limit()
  );
}

std::optional<int32_t> Tokenizer::token_to_id(std::string_view token) const {
  return impl_->find_id(token);
}

std::string Tokenizer::id_to_token(int32_t id) const {
  return std::string(impl_->token(id).value_or(""));
}

bool Tokenizer::is_special(int32_t id) const {
  return impl_->parts.added_tokens.is_special(id);
}

const std::string& Tokenizer::bos_token() const {
  return impl_->config.bos_token;
}

const std::string& Tokenizer::eos_token() const {
  return impl_->config.eos_token;
}

const std::string& Tokenizer::unk_token() const {
  return impl_->config.unk_token;
}

const std::string& Tokenizer::pad_token() const {
  return impl_->config.pad_token;
}

std::optional<int32_t> Tokenizer::bos_id() const {
  return impl_->find_id(impl_->config.bos_token);
}

std::optional<int32_t> Tokenizer::eos_id() const {
  return impl_->find_id(impl_->config.eos_token);
}

std::optional<int32_t> Tokenizer::pad_id() const {
  return impl_->find_id(impl_->config.pad_token);
}

std::optional<int32_t> Tokenizer::added_bos_id() const {
  return impl_->added_bos;
}

std::vector<int32_t> encode_rendered_prompt(
    const Tokenizer& tokenizer, std::string_view prompt
) {
  const std::string& own = tokenizer.bos_token();
  bool has_bos = prompt.starts_with("<bos>") || prompt.starts_with("<s>") ||
                 (!own.empty() && prompt.starts_with(own));
  EncodeOptions options;
  options.add_special = !has_bos;
  return tokenizer.encode(prompt, options);
}

}  // namespace mlxcel
