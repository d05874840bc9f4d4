#include "mlxcel/loading/estimate/weight_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "mlxcel/core/numbers.h"

namespace mlxcel {

namespace {

constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kScales = ".scales";
constexpr std::string_view kBiases = ".biases";

std::string module_of(std::string_view name, std::string_view plane) {
  return std::string(name.substr(0, name.size() - plane.size()));
}

uint64_t elements(std::span<const int64_t> shape) {
  return checked_product(shape).value_or(0);
}

bool packed(DType dtype) {
  return dtype == DType::u32;
}

bool possible(int64_t bits, int64_t group) {
  return bits >= 1 && bits <= 8 && bits != 7 && group > 0;
}

// Bits and group of packed rows of `words` words and `groups` scales.
struct Widths {
  int64_t bits = 0;
  int64_t group = 0;
};

std::optional<Widths> widths(
    int64_t words, int64_t groups, int64_t columns, int64_t declared_group
) {
  int64_t group =
      columns > 0 && columns % groups == 0 ? columns / groups : declared_group;
  if (columns <= 0 && group <= 0) {
    return std::nullopt;
  }
  int64_t wide = groups * group;
  if (wide <= 0 || words * 32 % wide != 0 ||
      !possible(words * 32 / wide, group)) {
    return std::nullopt;
  }
  return Widths{words * 32 / wide, group};
}

class Counter {
 public:
  Counter(
      const TensorListing& listing,
      const QuantConfig* declared,
      const TensorTable* table
  )
      : listing_(listing), declared_(declared) {
    if (table == nullptr) {
      return;
    }
    for (const TensorSpec& spec : *table) {
      if (spec.role == TensorRole::matrix) {
        columns_.emplace(spec.name, spec.shape.back());
      }
    }
  }

  void run(WeightSummary& summary) {
    const std::vector<TensorEntry>& tensors = listing_.tensors();
    std::vector<bool> plane(tensors.size());
    for (const TensorEntry& entry : tensors) {
      if (packed(entry.dtype) && entry.name.ends_with(kWeight)) {
        add_packed(entry, plane, summary);
      }
    }
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!plane[i]) {
        add_dense(tensors[i], summary);
      }
    }
    summary.tensors = tensors.size();
    summary.bytes = listing_.bytes();
    summary.formats = formats();
  }
  size_t undetermined() const {
    return undetermined_;
  }

 private:
  void add_dense(const TensorEntry& entry, WeightSummary& summary) {
    count(dense_name(entry.dtype), entry.end - entry.begin);
    summary.parameters += elements(entry.shape);
  }

  // Most tensors of a checkpoint have one of two or three types.
  const std::string& dense_name(DType dtype) {
    std::string& name = dense_names_[dtype];
    if (name.empty()) {
      WeightFormat dense;
      dense.dtype = dtype;
      name = dense.describe();
    }
    return name;
  }

  // A matrix of codes with its scales; without them it is what it is.
  void add_packed(
      const TensorEntry& entry, std::vector<bool>& plane, WeightSummary& summary
  ) {
    const std::vector<TensorEntry>& tensors = listing_.tensors();
    size_t scales = find_beside(entry, kScales);
    if (scales == TensorListing::kNone || entry.shape.empty() ||
        tensors[scales].shape.size() != entry.shape.size() ||
        tensors[scales].shape.back() <= 0) {
      return;
    }
    size_t biases = find_beside(entry, kBiases);
    uint64_t bytes = entry.end - entry.begin;
    for (size_t own : {scales, biases}) {
      if (own != TensorListing::kNone) {
        bytes += tensors[own].end - tensors[own].begin;
        plane[own] = true;
      }
    }
    plane[static_cast<size_t>(&entry - tensors.data())] = true;
    bool affine = biases != TensorListing::kNone;
    std::string path = module_of(entry.name, kWeight);
    add_quantised(entry, path, tensors[scales], affine, bytes, summary);
  }

  // Another plane of the matrix.
  size_t find_beside(const TensorEntry& weight, std::string_view plane) {
    std::string_view name = weight.name;
    name_.assign(name.substr(0, name.size() - kWeight.size())).append(plane);
    return listing_.find(name_);
  }

  std::vector<FormatCount> formats() const {
    std::vector<FormatCount> all;
    for (const auto& [name, found] : counts_) {
      all.push_back(found);
    }
    std::stable_sort(
        all.begin(),
        all.end(),
        [](const FormatCount& a, const FormatCount& b) {
          return a.bytes > b.bytes;
        }
    );
    return all;
  }
  void add_quantised(
      const TensorEntry& entry,
      const std::string& path,
      const TensorEntry& scales,
      bool affine,
      uint64_t bytes,
      WeightSummary& summary
  ) {
    int64_t groups = scales.shape.back();
    auto known = columns_.find(entry.name);
    QuantConfig::Override declared;
    if (declared_ != nullptr && declared_->declared) {
      declared = declared_->for_module(path);
    }
    auto found = widths(
        entry.shape.back(),
        groups,
        known == columns_.end() ? 0 : known->second,
        declared_ != nullptr && declared_->declared ? declared.group : 0
    );
    std::string mode = affine ? "affine"
                       : declared.mode == QuantMode::affine
                           ? "block floating"
                           : std::string(quant_mode_name(declared.mode));
    if (!found) {
      ++undetermined_;
      count(mode + ", bits and group undetermined", bytes);
      return;
    }
    count(
        fmt::format("{} {}-bit group {}", mode, found->bits, found->group),
        bytes
    );
    summary.parameters +=
        elements(scales.shape) * static_cast<uint64_t>(found->group);
  }

  void count(const std::string& format, uint64_t bytes) {
    FormatCount& found = counts_[format];
    found.format = format;
    ++found.tensors;
    found.bytes += bytes;
  }

  const TensorListing& listing_;
  const QuantConfig* declared_;
  std::map<DType, std::string> dense_names_;
  std::unordered_map<std::string_view, int64_t> columns_;
  std::map<std::string, FormatCount> counts_;
  size_t undetermined_ = 0;
  std::string name_;  // kept for its memory
};

bool quantisable(const TensorSpec& spec, const QuantConfig::Override& how) {
  return spec.role == TensorRole::matrix && spec.shape.size() >= 2 &&
         spec.name.ends_with(kWeight) && !how.dense && how.group > 0 &&
         spec.shape.back() % how.group == 0 &&
         how.bits * spec.shape.back() % 32 == 0;
}

class Imagination {
 public:
  void add(std::string name, DType dtype, std::vector<int64_t> shape) {
    uint64_t bytes = elements(shape) * static_cast<uint64_t>(dtype_size(dtype));
    listing.add({std::move(name), dtype, std::move(shape), at_, at_ + bytes});
    at_ += bytes;
  }
  TensorListing listing;

 private:
  uint64_t at_ = 0;
};

}  // namespace

WeightSummary summarize_weights(
    const TensorListing& listing,
    const QuantConfig* declared,
    const TensorTable* table
) {
  WeightSummary summary;
  Counter counter(listing, declared, table);
  counter.run(summary);
  if (counter.undetermined() > 0) {
    summary.parameters_note = fmt::format(
        "{} matrices are packed in a way that neither shapes nor config tell",
        counter.undetermined()
    );
  }
  return summary;
}

uint64_t count_parameters(const TensorTable& table, const WeightMap& weights) {
  uint64_t sum = 0;
  std::unordered_set<const WeightSource*> seen;
  for (const TensorSpec& spec : table) {
    const Weight* weight = weights.find(spec.name);
    if (weight != nullptr && spec.role != TensorRole::unused &&
        seen.insert(weight->source.get()).second) {
      sum += elements(spec.shape);
    }
  }
  return sum;
}

TensorListing imagine_tensors(
    const TensorTable& table, const QuantConfig& quantization, DType dtype
) {
  Imagination out;
  for (const TensorSpec& spec : table) {
    if (spec.role == TensorRole::unused) {
      continue;
    }
    QuantConfig::Override how;
    how.dense = true;
    if (quantization.declared && spec.name.ends_with(kWeight)) {
      how = quantization.for_module(module_of(spec.name, kWeight));
    }
    if (!quantisable(spec, how)) {
      out.add(spec.name, dtype, spec.shape);
      continue;
    }
    std::string path = module_of(spec.name, kWeight);
    int64_t cols = spec.shape.back();
    bool affine = how.mode == QuantMode::affine;
    DType scale = affine ? dtype : DType::u8;
    auto with_last = [&](int64_t last) {
      std::vector<int64_t> shape = spec.shape;
      shape.back() = last;
      return shape;
    };
    out.add(spec.name, DType::u32, with_last(cols * how.bits / 32));
    out.add(path + std::string(kScales), scale, with_last(cols / how.group));
    if (affine) {
      out.add(path + std::string(kBiases), scale, with_last(cols / how.group));
    }
  }
  return std::move(out.listing);
}

}  // namespace mlxcel
