#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/text.h"
#include "mlxcel/core/utf8.h"
#include "mlxcel/weights/safetensors.h"

namespace mlxcel {

namespace {

// The limit of the reference implementation (safetensors, src/tensor.rs).
constexpr uint64_t kMaxHeader = 100'000'000;
constexpr size_t kLengthBytes = 8;
constexpr std::string_view kPointer = "version https://git-lfs";
// Published tensors have at most five.
constexpr size_t kMaxDims = 16;

void append_utf8(std::string& out, uint32_t point) {
  auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xc0 | (point >> 6));
    put(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    put(0xe0 | (point >> 12));
    put(0x80 | ((point >> 6) & 0x3f));
    put(0x80 | (point & 0x3f));
  } else {
    put(0xf0 | (point >> 18));
    put(0x80 | ((point >> 12) & 0x3f));
    put(0x80 | ((point >> 6) & 0x3f));
    put(0x80 | (point & 0x3f));
  }
}

/// Reads exactly the grammar of a SafeTensors header, not JSON at large, so
/// that nothing can nest and nothing unknown passes. The text is valid UTF-8.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& path)
      : text_(text), path_(path) {}

  std::vector<TensorEntry> parse() {
    expect('{');
    bool metadata = false;
    if (!take('}')) {
      do {
        entry_ = string("a tensor name");
        expect(':');
        if (entry_ == "__metadata__") {
          if (metadata) {
            reject("appears twice");
          }
          metadata = true;
          read_metadata();
        } else {
          read_entry();
        }
      } while (take(','));
      entry_.clear();
      expect('}');
    }
    skip_space();
    if (at_ != text_.size()) {
      reject(fmt::format("header byte {}: text after the object", at_));
    }
    return std::move(entries_);
  }

 private:
  [[noreturn]] void reject(const std::string& why) const {
    std::string where = entry_.empty() ? "" : "tensor " + quote(entry_) + ": ";
    fail(
        ErrorCode::invalid_input,
        fmt::format("[safetensors] {}: {}{}", path_, where, why)
    );
  }

  [[noreturn]] void unexpected(std::string_view wanted) const {
    reject(
        at_ < text_.size()
            ? fmt::format(
                  "header byte {}: expected {}, got {}",
                  at_,
                  wanted,
                  quote(text_.substr(at_, 1))
              )
            : fmt::format("the header ends where {} should be", wanted)
    );
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' ||
                                  text_[at_] == '\t' || text_[at_] == '\r')) {
      ++at_;
    }
  }

  bool take(char c) {
    skip_space();
    if (at_ < text_.size() && text_[at_] == c) {
      ++at_;
      return true;
    }
    return false;
  }

  void expect(char c) {
    if (!take(c)) {
      unexpected(fmt::format("'{}'", c));
    }
  }

  bool take_word(std::string_view word) {
    skip_space();
    if (text_.substr(at_).starts_with(word)) {
      at_ += word.size();
      return true;
    }
    return false;
  }

  uint32_t hex4() {
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      char c = at_ < text_.size() ? text_[at_] : '\0';
      uint32_t digit;
      if (c >= '0' && c <= '9') {
        digit = static_cast<uint32_t>(c - '0');
      } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
        digit = static_cast<uint32_t>((c | 0x20) - 'a' + 10);
      } else {
        unexpected("a hexadecimal digit");
      }
      value = value * 16 + digit;
    }
    return value;
  }

  // The rest of an escape sequence, its backslash read.
  void escape(std::string& out) {
    constexpr std::string_view kFrom = "\"\\/bfnrt";
    constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
    char c = at_ < text_.size() ? text_[at_] : '\0';
    if (size_t found = kFrom.find(c); c != '\0' && found != kFrom.npos) {
      ++at_;
      out += kTo[found];
      return;
    }
    if (c != 'u') {
      unexpected("an escape sequence");
    }
    ++at_;
    uint32_t point = hex4();
    if (point >= 0xd800 && point < 0xdc00 && text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      uint32_t low = hex4();
      if (low < 0xdc00 || low > 0xdfff) {
        reject("a surrogate without its pair");
      }
      point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
    } else if (point >= 0xd800 && point <= 0xdfff) {
      reject("a surrogate without its pair");
    }
    append_utf8(out, point);
  }

  std::string string(std::string_view what) {
    if (!take('"')) {
      unexpected(what);
    }
    std::string out;
    size_t start = at_;
    while (at_ < text_.size()) {
      unsigned char c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') {
        out.append(text_, start, at_ - start);
        ++at_;
        return out;
      }
      if (c == '\\') {
        out.append(text_, start, at_ - start);
        ++at_;
        escape(out);
        start = at_;
      } else if (c < 0x20) {
        reject(
            fmt::format("header byte {}: a control character in a string", at_)
        );
      } else {
        ++at_;
      }
    }
    reject("the header ends inside a string");
  }

  uint64_t integer(std::string_view what) {
    skip_space();
    size_t start = at_;
    uint64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      uint64_t digit = static_cast<uint64_t>(text_[at_] - '0');
      auto shifted = checked_mul(value, 10);
      auto next = shifted ? checked_add(*shifted, digit) : std::nullopt;
      if (!next) {
        reject(fmt::format("{}: a number beyond 64 bits", what));
      }
      value = *next;
      ++at_;
    }
    bool leading_zero = at_ - start > 1 && text_[start] == '0';
    bool more = at_ < text_.size() && std::string_view(".eE+-").find(text_[at_]
                                      ) != std::string_view::npos;
    if (at_ == start || leading_zero || more) {
      reject(fmt::format(
          "{}: expected integers from 0 on, got {}",
          what,
          quote(text_.substr(start, text_.find_first_of(",]}", start) - start))
      ));
    }
    return value;
  }

  void read_metadata() {
    if (take_word("null")) {
      return;
    }
    expect('{');
    std::vector<std::string> keys;
    if (take('}')) {
      return;
    }
    do {
      keys.push_back(string("a metadata key"));
      expect(':');
      string("a string");
    } while (take(','));
    expect('}');
    std::sort(keys.begin(), keys.end());
    auto twin = std::adjacent_find(keys.begin(), keys.end());
    if (twin != keys.end()) {
      reject(fmt::format("duplicate key {}", quote(*twin)));
    }
  }

  void read_entry() {
    for (char c : entry_) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
        reject("a control character in the name");
      }
    }
    TensorEntry entry;
    bool dtype = false;
    bool shape = false;
    bool offsets = false;
    expect('{');
    do {
      std::string key = string("a field name");
      expect(':');
      if (key == "dtype" && !dtype) {
        dtype = true;
        read_dtype(entry);
      } else if (key == "shape" && !shape) {
        shape = true;
        read_shape(entry);
      } else if (key == "data_offsets" && !offsets) {
        offsets = true;
        read_offsets(entry);
      } else {
        reject(fmt::format("unknown or repeated field {}", quote(key)));
      }
    } while (take(','));
    expect('}');
    if (!dtype || !shape || !offsets) {
      reject(fmt::format(
          "{} is missing",
          !dtype   ? "dtype"
          : !shape ? "shape"
                   : "data_offsets"
      ));
    }
    entry.name = std::move(entry_);
    entries_.push_back(std::move(entry));
  }

  void read_dtype(TensorEntry& entry) {
    std::string name = string("a dtype");
    auto dtype = parse_dtype(name);
    if (!dtype) {
      reject(fmt::format("unknown dtype {}", quote(name)));
    }
    entry.dtype = *dtype;
  }

  void read_shape(TensorEntry& entry) {
    expect('[');
    if (take(']')) {
      return;
    }
    do {
      uint64_t dim = integer("shape");
      if (dim > INT64_MAX) {
        reject(fmt::format("shape: {} is too large", dim));
      }
      if (entry.shape.size() == kMaxDims) {
        reject(fmt::format("shape: more than {} dimensions", kMaxDims));
      }
      entry.shape.push_back(static_cast<int64_t>(dim));
    } while (take(','));
    expect(']');
  }

  void read_offsets(TensorEntry& entry) {
    expect('[');
    entry.begin = integer("data_offsets");
    expect(',');
    entry.end = integer("data_offsets");
    expect(']');
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
  std::string entry_;  // the tensor being read, for messages
  std::vector<TensorEntry> entries_;
};

[[noreturn]] void reject_file(const std::string& path, const std::string& why) {
  fail(
      ErrorCode::invalid_input, fmt::format("[safetensors] {}: {}", path, why)
  );
}

[[noreturn]] void reject_tensor(
    const std::string& path, const TensorEntry& entry, const std::string& why
) {
  reject_file(path, fmt::format("tensor {}: {}", quote(entry.name), why));
}

// Offsets are still relative to the payload here.
void check_extent(
    const std::string& path, const TensorEntry& entry, uint64_t payload
) {
  auto elements = checked_product(entry.shape);
  auto bytes =
      elements ? checked_mul(
                     *elements, static_cast<uint64_t>(dtype_size(entry.dtype))
                 )
               : std::nullopt;
  if (!bytes) {
    reject_tensor(path, entry, "the product of its shape overflows");
  }
  if (entry.begin > entry.end) {
    reject_tensor(
        path,
        entry,
        fmt::format("data_offsets {}, {} run backwards", entry.begin, entry.end)
    );
  }
  if (entry.end - entry.begin != *bytes) {
    reject_tensor(
        path,
        entry,
        fmt::format(
            "data_offsets {}, {} hold {} bytes, its shape and dtype need {}",
            entry.begin,
            entry.end,
            entry.end - entry.begin,
            *bytes
        )
    );
  }
  if (entry.end > payload) {
    reject_tensor(
        path,
        entry,
        fmt::format(
            "ends at byte {} of the payload, but the file is truncated after "
            "{} (an incomplete download?)",
            entry.end,
            payload
        )
    );
  }
}

void check_names(
    const std::string& path, const std::vector<TensorEntry>& entries
) {
  std::vector<std::string_view> names(entries.size());
  std::transform(
      entries.begin(),
      entries.end(),
      names.begin(),
      [](const TensorEntry& entry) { return std::string_view(entry.name); }
  );
  if (auto twin = find_repeated(names)) {
    auto entry = std::find_if(
        entries.begin(),
        entries.end(),
        [&](const TensorEntry& one) { return one.name == *twin; }
    );
    reject_tensor(path, *entry, "appears twice");
  }
}

// Payload order; every byte belongs to exactly one tensor.
void check_contiguous(
    const std::string& path, std::vector<TensorEntry>& entries, uint64_t payload
) {
  auto by_offset = [](const TensorEntry& a, const TensorEntry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  };
  if (!std::is_sorted(entries.begin(), entries.end(), by_offset)) {
    std::stable_sort(entries.begin(), entries.end(), by_offset);
  }
  uint64_t at = 0;
  for (const TensorEntry& entry : entries) {
    if (entry.begin != at) {
      reject_tensor(
          path,
          entry,
          fmt::format(
              "starts at byte {} of the payload, {} {}",
              entry.begin,
              entry.begin < at ? "inside the tensor before it, which ends at"
                               : "leaving a hole after",
              at
          )
      );
    }
    at = entry.end;
  }
  if (at != payload) {
    reject_file(
        path,
        fmt::format(
            "{} bytes after the last tensor belong to none", payload - at
        )
    );
  }
}

}  // namespace

std::vector<TensorEntry> read_safetensors_header(
    std::span<const std::byte> file, const std::string& path
) {
  if (file.size() < kLengthBytes) {
    reject_file(
        path,
        fmt::format(
            "{} bytes are too few for a SafeTensors file (an incomplete "
            "download?)",
            file.size()
        )
    );
  }
  if (std::string_view(
          reinterpret_cast<const char*>(file.data()),
          std::min(file.size(), kPointer.size())
      ) == kPointer) {
    reject_file(
        path,
        "a Git LFS pointer in place of the file; `git lfs pull` fetches it"
    );
  }
  uint64_t length = load_le<uint64_t>(file.data());
  if (length == 0 || length > kMaxHeader) {
    reject_file(
        path,
        fmt::format(
            "a header of {} bytes; 1 to {} are allowed", length, kMaxHeader
        )
    );
  }
  if (file.size() - kLengthBytes < length) {
    reject_file(
        path,
        fmt::format(
            "truncated: the header has {} bytes, the file {} (an incomplete "
            "download?)",
            length,
            file.size()
        )
    );
  }
  // A copy, because the file may change while it is mapped.
  std::string text(
      reinterpret_cast<const char*>(file.data()) + kLengthBytes, length
  );
  if (text[0] != '{') {
    reject_file(path, "the header does not start with '{'");
  }
  if (auto at = find_invalid_utf8(text)) {
    reject_file(path, fmt::format("header byte {}: invalid UTF-8", *at));
  }
  uint64_t base = kLengthBytes + length;
  uint64_t payload = file.size() - base;
  std::vector<TensorEntry> entries = HeaderParser(text, path).parse();
  check_names(path, entries);
  for (const TensorEntry& entry : entries) {
    check_extent(path, entry, payload);
  }
  check_contiguous(path, entries, payload);
  for (TensorEntry& entry : entries) {
    entry.begin += base;
    entry.end += base;
  }
  return entries;
}

}  // namespace mlxcel
