#include "mlxcel/weights/convert/gguf/gguf.h"

#include <fmt/format.h>

#include <algorithm>

#include "mlxcel/core/numbers.h"

namespace mlxcel::convert {

namespace {

// Far above any model, far below what would hurt.
constexpr uint64_t kMaxMetadata = 1 << 16;
constexpr uint64_t kMaxTensors = 1 << 16;
constexpr uint64_t kMaxArray = 1 << 24;
constexpr uint64_t kMaxKey = 65535;  // bytes, of the format
constexpr uint64_t kMaxName = 64;    // bytes, of the format
constexpr uint32_t kMaxDimensions = 4;
constexpr uint64_t kMaxAlignment = 1 << 20;

struct TypeInfo {
  GgmlType type;
  BlockLayout layout;
};

// ggml-common.h: block_q4_0 ... block_q6_K.
constexpr TypeInfo kTypes[] = {
    {GgmlType::f32, {"F32", 1, 4}},
    {GgmlType::f16, {"F16", 1, 2}},
    {GgmlType::bf16, {"BF16", 1, 2}},
    {GgmlType::q4_0, {"Q4_0", 32, 18}},
    {GgmlType::q4_1, {"Q4_1", 32, 20}},
    {GgmlType::q5_0, {"Q5_0", 32, 22}},
    {GgmlType::q5_1, {"Q5_1", 32, 24}},
    {GgmlType::q8_0, {"Q8_0", 32, 34}},
    {GgmlType::q4_k, {"Q4_K", 256, 144}},
    {GgmlType::q5_k, {"Q5_K", 256, 176}},
    {GgmlType::q6_k, {"Q6_K", 256, 210}},
};

// Names of the other types of ggml.h, for the message that refuses them.
std::string foreign_type_name(uint32_t type) {
  static const std::map<uint32_t, const char*> names = {
      {9, "Q8_1"},     {10, "Q2_K"},   {11, "Q3_K"},    {15, "Q8_K"},
      {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"},
      {20, "IQ4_NL"},  {21, "IQ3_S"},  {22, "IQ2_S"},   {23, "IQ4_XS"},
      {24, "I8"},      {25, "I16"},    {26, "I32"},     {27, "I64"},
      {28, "F64"},     {29, "IQ1_M"},  {34, "TQ1_0"},   {35, "TQ2_0"},
      {39, "MXFP4"},   {40, "NVFP4"},
  };
  auto found = names.find(type);
  return found == names.end() ? std::to_string(type)
                              : fmt::format("{} ({})", type, found->second);
}

// Bytes of a number or boolean; 0 for strings and arrays.
uint64_t type_size(GgufType type) {
  static constexpr uint64_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return sizes[static_cast<uint32_t>(type)];
}

[[noreturn]] void reject_in(
    const std::string& path,
    const std::string& field,
    const std::string& message,
    ErrorCode code = ErrorCode::invalid_input
) {
  fail(code, fmt::format("[gguf] {}: {} (in {})", field, message, path));
}

// Walks the header. Every step checks that the bytes are there.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const std::string& path)
      : bytes_(bytes), path_(path) {}

  uint64_t position() const {
    return at_;
  }
  uint64_t remaining() const {
    return bytes_.size() - at_;
  }

  const std::byte* take(uint64_t count, const std::string& field) {
    if (count > remaining()) {
      reject(
          field,
          fmt::format(
              "needs {} bytes, the file ends after {}", count, remaining()
          )
      );
    }
    const std::byte* data = bytes_.data() + at_;
    at_ += count;
    return data;
  }

  template <typename T>
  T number(const std::string& field) {
    return load_le<T>(take(sizeof(T), field));
  }

  // A string: its length and its bytes. `index` names the element of an array.
  std::string_view text(const std::string& field, int64_t index = -1) {
    uint64_t length = 0;
    bool whole = remaining() >= sizeof(length);
    if (whole) {
      length = load_le<uint64_t>(bytes_.data() + at_);
      whole = length <= remaining() - sizeof(length);
    }
    if (!whole) {
      std::string name =
          index < 0 ? field : fmt::format("{}[{}]", field, index);
      reject(
          name,
          fmt::format(
              "a string of {} bytes, the file ends after {}",
              length,
              remaining()
          )
      );
    }
    at_ += sizeof(length);
    return {reinterpret_cast<const char*>(take(length, field)), length};
  }

  // A count of things that take at least `least` bytes each.
  uint64_t counted(
      uint64_t count, uint64_t most, uint64_t least, const std::string& field
  ) const {
    if (count > most) {
      reject(field, fmt::format("{}, at most {} allowed", count, most));
    }
    if (count > remaining() / least) {
      reject(
          field,
          fmt::format("{}, the file has only {} bytes left", count, remaining())
      );
    }
    return count;
  }

  [[noreturn]] void reject(
      const std::string& field,
      const std::string& message,
      ErrorCode code = ErrorCode::invalid_input
  ) const {
    reject_in(path_, field, message, code);
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& path_;
  uint64_t at_ = 0;
};

GgufType read_type(Cursor& in, const std::string& field) {
  auto type = in.number<uint32_t>(field);
  if (type > static_cast<uint32_t>(GgufType::float64)) {
    in.reject(field, fmt::format("{} is no GGUF value type", type));
  }
  return static_cast<GgufType>(type);
}

void read_payload(Cursor& in, GgufValue& value, const std::string& field) {
  if (value.element == GgufType::string) {
    value.strings.reserve(value.count);
    bool array = value.type == GgufType::array;
    for (uint64_t i = 0; i < value.count; ++i) {
      value.strings.push_back(
          in.text(field, array ? static_cast<int64_t>(i) : -1)
      );
    }
    return;
  }
  value.data = in.take(value.count * type_size(value.element), field);
  if (value.element == GgufType::boolean) {
    for (uint64_t i = 0; i < value.count; ++i) {
      if (load_le<uint8_t>(value.data + i) > 1) {
        in.reject(field, "a boolean that is neither 0 nor 1");
      }
    }
  }
}

GgufValue read_value(Cursor& in, const std::string& field) {
  GgufValue value;
  value.type = read_type(in, field + " type");
  value.element = value.type;
  if (value.type == GgufType::array) {
    value.element = read_type(in, field + " element type");
    if (value.element == GgufType::array) {
      in.reject(field, "an array of arrays", ErrorCode::unsupported);
    }
    uint64_t least =
        value.element == GgufType::string ? 8 : type_size(value.element);
    value.count = in.counted(
        in.number<uint64_t>(field + " count"),
        kMaxArray,
        least,
        field + " count"
    );
  }
  read_payload(in, value, field);
  return value;
}

// Name, dimensions, type and relative offset of one tensor.
GgufTensor read_tensor(Cursor& in, uint64_t index) {
  GgufTensor tensor;
  std::string field = fmt::format("tensor[{}] name", index);
  std::string_view name = in.text(field);
  if (name.empty() || name.size() > kMaxName) {
    in.reject(
        field, fmt::format("{} bytes, expected 1 to {}", name.size(), kMaxName)
    );
  }
  tensor.name = name;
  field = "tensor " + quote(name);

  auto count = in.number<uint32_t>(field + " dimension count");
  if (count == 0 || count > kMaxDimensions) {
    in.reject(
        field + " dimension count",
        fmt::format("{}, expected 1 to {}", count, kMaxDimensions)
    );
  }
  for (uint32_t i = 0; i < count; ++i) {
    auto size = in.number<int64_t>(field + " dimensions");
    if (size <= 0) {
      in.reject(
          fmt::format("{} dimensions[{}]", field, i),
          fmt::format("{}, expected a positive size", size)
      );
    }
    tensor.shape.insert(tensor.shape.begin(), size);
  }

  auto type = in.number<uint32_t>(field + " type");
  const auto* known =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) {
        return static_cast<uint32_t>(t.type) == type;
      });
  if (known == std::end(kTypes)) {
    in.reject(
        field + " type",
        fmt::format("{} is not supported", foreign_type_name(type)),
        ErrorCode::unsupported
    );
  }
  tensor.type = known->type;
  tensor.offset = in.number<uint64_t>(field + " offset");

  const BlockLayout& layout = known->layout;
  auto elements = checked_product(tensor.shape);
  if (!elements || tensor.columns() % layout.elements != 0) {
    in.reject(
        field + " dimensions",
        elements ? fmt::format(
                       "rows of {} elements, {} needs a multiple of {}",
                       tensor.columns(),
                       layout.name,
                       layout.elements
                   )
                 : "more elements than can be counted"
    );
  }
  auto bytes = checked_mul(
      *elements / static_cast<uint64_t>(layout.elements),
      static_cast<uint64_t>(layout.bytes)
  );
  if (!bytes) {
    in.reject(field + " dimensions", "more bytes than can be counted");
  }
  tensor.bytes = *bytes;
  return tensor;
}

// Turns relative offsets into absolute ones.
void place_tensors(
    const Cursor& in,
    std::vector<GgufTensor>& tensors,
    uint64_t alignment,
    uint64_t file_size
) {
  uint64_t start = (in.position() + alignment - 1) / alignment * alignment;
  for (GgufTensor& tensor : tensors) {
    std::string field = fmt::format("tensor {} offset", quote(tensor.name));
    if (tensor.offset % alignment != 0) {
      in.reject(
          field,
          fmt::format("{} is no multiple of {}", tensor.offset, alignment)
      );
    }
    auto begin = checked_add(start, tensor.offset);
    auto end = begin ? checked_add(*begin, tensor.bytes) : std::nullopt;
    if (!end || *end > file_size) {
      in.reject(
          field,
          fmt::format(
              "{} plus {} bytes of data pass the end of the file ({} bytes, "
              "data from {})",
              tensor.offset,
              tensor.bytes,
              file_size,
              start
          )
      );
    }
    tensor.offset = *begin;
  }
  std::vector<const GgufTensor*> order;
  order.reserve(tensors.size());
  for (const GgufTensor& tensor : tensors) {
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return a->offset < b->offset;
  });
  for (size_t i = 1; i < order.size(); ++i) {
    if (order[i - 1]->offset + order[i - 1]->bytes > order[i]->offset) {
      in.reject(
          fmt::format("tensor {} offset", quote(order[i]->name)),
          "overlaps tensor " + quote(order[i - 1]->name)
      );
    }
  }
}

uint32_t read_version(Cursor& in) {
  const std::byte* magic = in.take(4, "magic");
  if (std::memcmp(magic, "GGUF", 4) != 0) {
    in.reject("magic", "this is no GGUF file");
  }
  auto version = in.number<uint32_t>("version");
  if (version != 2 && version != 3) {
    in.reject(
        "version",
        (version & 0xffff) == 0 && version != 0
            ? fmt::format("{:#x}: big-endian files are not supported", version)
            : fmt::format("{} is not supported, expected 2 or 3", version),
        ErrorCode::unsupported
    );
  }
  return version;
}

}  // namespace

const BlockLayout& block_layout(GgmlType type) {
  for (const TypeInfo& info : kTypes) {
    if (info.type == type) {
      return info.layout;
    }
  }
  fail(ErrorCode::internal, "[gguf] a tensor type without a layout");
}

int64_t GgufTensor::rows() const {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) {
    rows *= shape[i];
  }
  return rows;
}

GgufFile GgufFile::open(const std::string& path) {
  GgufFile gguf;
  gguf.file_ = MappedFile::open(path);
  std::span<const std::byte> bytes = gguf.file_->bytes();
  Cursor in(bytes, gguf.file_->path());

  gguf.version_ = read_version(in);
  // The least that a tensor and a metadata entry take.
  uint64_t tensors = in.counted(
      in.number<uint64_t>("tensor count"), kMaxTensors, 33, "tensor count"
  );
  uint64_t entries = in.counted(
      in.number<uint64_t>("metadata count"), kMaxMetadata, 14, "metadata count"
  );

  for (uint64_t i = 0; i < entries; ++i) {
    std::string field = fmt::format("metadata[{}] key", i);
    std::string_view key = in.text(field);
    if (key.empty() || key.size() > kMaxKey) {
      in.reject(field, fmt::format("{} bytes", key.size()));
    }
    std::string name(key);
    if (gguf.metadata_.contains(name)) {
      in.reject(field, quote(key) + " occurs twice");
    }
    gguf.metadata_.emplace(name, read_value(in, quote(key)));
  }
  auto alignment = static_cast<uint64_t>(
      gguf.find_int("general.alignment", 1, kMaxAlignment).value_or(32)
  );
  if ((alignment & (alignment - 1)) != 0) {
    in.reject(
        "general.alignment", fmt::format("{} is no power of two", alignment)
    );
  }

  for (uint64_t i = 0; i < tensors; ++i) {
    GgufTensor tensor = read_tensor(in, i);
    if (!gguf.tensor_index_.emplace(tensor.name, i).second) {
      in.reject(
          fmt::format("tensor[{}] name", i),
          quote(tensor.name) + " occurs twice"
      );
    }
    gguf.tensors_.push_back(std::move(tensor));
  }
  place_tensors(in, gguf.tensors_, alignment, bytes.size());
  return gguf;
}

void GgufFile::reject(
    const std::string& field, const std::string& message, ErrorCode code
) const {
  reject_in(path(), field, message, code);
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace mlxcel::convert
