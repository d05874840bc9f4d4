#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <map>
#include <random>
#include <string>

#include "mlxcel/backend/cpu/matmul.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/os.h"

/// Times the matrix products of a whole model, kernel by kernel, beside a
/// plain read of the same bytes:
///
///   mlxcel_kernel_bench [smollm2|qwen3-0.6b|qwen3-1.7b] [name=value ...]
///
/// bits (0: dense), group, scales (f16, bf16, f32: also the dense type), isa,
/// threads, rows (of activations), family (decode, prefill), mode (int8,
/// float32), seconds, layers (0: all), head (0: without), split (1: each kind
/// of matrix by itself).
namespace mlxcel::backend::cpu {

namespace {

struct Model {
  int64_t hidden;
  int64_t ffn;
  int64_t queries;
  int64_t keys;
  int64_t layers;
  int64_t vocabulary;
};

const std::map<std::string, Model> kModels = {
    {"smollm2", {576, 1536, 576, 192, 30, 49152}},
    {"qwen3-0.6b", {1024, 3072, 2048, 1024, 28, 151936}},
    {"qwen3-1.7b", {2048, 6144, 2048, 1024, 28, 151936}},
};

/// A mapped file of random bytes from which planes are cut.
class Arena : public WeightSource {
 public:
  explicit Arena(int64_t size) : path_(temporary_path()) {
    int fd = os::create_exclusive(path_);
    std::mt19937_64 random(1);
    std::vector<uint64_t> chunk(1 << 17);
    for (int64_t done = 0; done < size; done += 1 << 20) {
      for (uint64_t& word : chunk) {
        // As scales of any type these are small and positive.
        word = (random() & 0x03ff03ff03ff03ffU) | 0x1c001c001c001c00U;
      }
      os::write_all(fd, chunk.data(), 1 << 20, path_);
    }
    os::close_file(fd);
    file_ = MappedFile::open(path_);
    os::remove_path(path_);
  }
  std::span<const std::byte> bytes() const override {
    return file_->bytes();
  }
  std::string origin() const override {
    return path_;
  }

 private:
  static std::string temporary_path() {
    const char* folder = os::environment("TMPDIR");
    return join_path(
        folder != nullptr ? folder : "/tmp",
        "mlxcel_kernel_bench." + os::random_suffix()
    );
  }

  std::string path_;
  std::shared_ptr<MappedFile> file_;
};

class Extent : public WeightSource {
 public:
  Extent(std::shared_ptr<Arena> arena, int64_t at, int64_t size)
      : arena_(std::move(arena)), at_(at), size_(size) {}
  std::span<const std::byte> bytes() const override {
    return arena_->bytes().subspan(
        static_cast<size_t>(at_), static_cast<size_t>(size_)
    );
  }
  std::string origin() const override {
    return arena_->origin();
  }

 private:
  std::shared_ptr<Arena> arena_;
  int64_t at_;
  int64_t size_;
};

struct Settings {
  std::string model = "smollm2";
  std::map<std::string, std::string> values = {
      {"bits", "4"},
      {"group", "32"},
      {"scales", "f16"},
      {"isa", ""},
      {"threads", "2"},
      {"rows", "1"},
      {"family", "decode"},
      {"mode", "int8"},
      {"seconds", "1"},
      {"layers", "0"},
      {"split", "0"},
      {"head", "1"}};

  int number(const std::string& name) const {
    auto value = parse_int(values.at(name));
    if (!value) {
      fail(ErrorCode::usage, name + ": expected an integer");
    }
    return static_cast<int>(*value);
  }
  Isa isa() const {
    const std::string& name = values.at("isa");
    for (Isa each : available_isas()) {
      if (isa_name(each) == name) {
        return each;
      }
    }
    return name.empty() ? chosen_isa()
                        : throw Error(
                              ErrorCode::usage,
                              "isa: " + quote(name) + " is not available"
                          );
  }
  void set(const std::string& word) {
    size_t equals = word.find('=');
    if (equals == std::string::npos && kModels.contains(word)) {
      model = word;
    } else if (values.contains(word.substr(0, equals))) {
      values[word.substr(0, equals)] = word.substr(equals + 1);
    } else {
      fail(ErrorCode::usage, quote(word) + " is neither a model nor a setting");
    }
  }
  WeightFormat format() const {
    WeightFormat format;
    format.dtype = values.at("scales") == "f32"    ? DType::f32
                   : values.at("scales") == "bf16" ? DType::bf16
                                                   : DType::f16;
    if (number("bits") > 0) {
      format.mode = QuantMode::affine;
      format.bits = number("bits");
      format.group = number("group");
    }
    return format;
  }
};

struct Layer {
  std::string name;
  std::shared_ptr<const CpuLinear> weight;
  MatmulEpilogue epilogue;
  int64_t bytes = 0;
  int64_t rows = 0;
  double seconds = 0;
};

class Planner {
 public:
  explicit Planner(WeightFormat format) : format_(format) {}

  int64_t size = 0;

  void add(
      std::vector<Layer>& layers,
      std::string name,
      std::vector<int64_t> rows,
      int64_t cols,
      bool gate
  ) {
    Layer layer;
    layer.name = std::move(name);
    if (gate) {
      layer.epilogue.gate = Activation::silu;
    }
    if (arena != nullptr) {
      WeightGroup group;
      for (int64_t each : rows) {
        group.parts.push_back(matrix(each, cols));
      }
      layer.weight = make_cpu_linear(group);
    }
    for (int64_t each : rows) {
      layer.bytes += each * row_bytes(cols);
      layer.rows += each;
    }
    size += layer.bytes + 64;
    layers.push_back(std::move(layer));
  }

  std::shared_ptr<Arena> arena;

 private:
  int64_t row_bytes(int64_t cols) const {
    int64_t unit = format_.dtype == DType::f32 ? 4 : 2;
    return format_.bits == 0
               ? cols * unit
               : cols * format_.bits / 8 + 2 * cols / format_.group * unit;
  }

  Weight cut(DType dtype, std::vector<int64_t> shape, int64_t bytes) {
    Weight weight;
    weight.dtype = dtype;
    weight.shape = std::move(shape);
    weight.source = std::make_shared<Extent>(arena, at_, bytes);
    at_ += bytes;
    return weight;
  }

  LinearWeight matrix(int64_t rows, int64_t cols) {
    LinearWeight weight;
    weight.path = "bench";
    weight.rows = rows;
    weight.cols = cols;
    weight.format = format_;
    int64_t unit = format_.dtype == DType::f32 ? 4 : 2;
    if (format_.bits == 0) {
      weight.codes = cut(format_.dtype, {rows, cols}, rows * cols * unit);
      return weight;
    }
    int64_t groups = cols / format_.group;
    weight.codes =
        cut(DType::u32,
            {rows, cols * format_.bits / 32},
            rows * cols * format_.bits / 8);
    weight.scales = cut(format_.dtype, {rows, groups}, rows * groups * unit);
    weight.biases = cut(format_.dtype, {rows, groups}, rows * groups * unit);
    return weight;
  }

  WeightFormat format_;
  int64_t at_ = 0;
};

std::vector<Layer> plan(Planner& planner, const Model& model, int layers) {
  std::vector<Layer> all;
  for (int64_t i = 0; i < layers; ++i) {
    planner.add(
        all, "qkv", {model.queries, model.keys, model.keys}, model.hidden, false
    );
    planner.add(all, "o", {model.hidden}, model.queries, false);
    planner.add(all, "gate_up", {model.ffn, model.ffn}, model.hidden, true);
    planner.add(all, "down", {model.hidden}, model.ffn, false);
  }
  planner.add(all, "head", {model.vocabulary}, model.hidden, false);
  return all;
}

double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

uint64_t read_all(std::span<const std::byte> bytes) {
  using V = uint64_t __attribute__((vector_size(32), aligned(1)));
  V sum[4] = {};
  const std::byte* p = bytes.data();
  for (size_t i = 0; i + 256 <= bytes.size(); i += 256) {
    for (size_t j = 0; j < 8; ++j) {
      sum[j % 4] |= *reinterpret_cast<const V*>(p + i + 32 * j);
    }
  }
  V total = sum[0] | sum[1] | sum[2] | sum[3];
  return total[0] | total[1] | total[2] | total[3];
}

void report(std::vector<double> seconds, double work, const char* unit) {
  std::sort(seconds.begin(), seconds.end());
  double median = seconds[seconds.size() / 2];
  std::printf(
      "%8.2f %s median, %8.2f best (%.3f ms, %zu samples)\n",
      work / median / 1e9,
      unit,
      work / seconds.front() / 1e9,
      median * 1e3,
      seconds.size()
  );
}

class Bench {
 public:
  explicit Bench(const Settings& settings)
      : settings_(settings),
        pool_(settings.number("threads")),
        isa_(settings.isa()) {
    const Model& model = kModels.at(settings.model);
    int count = settings.number("layers");
    count = count > 0 ? count : static_cast<int>(model.layers);
    Planner measure(settings.format());
    plan(measure, model, count);
    Planner build(settings.format());
    build.arena = std::make_shared<Arena>(measure.size);
    layers_ = plan(build, model, count);
    arena_ = build.arena;
    rows_ = settings.number("rows");
    std::mt19937 random(2);
    std::normal_distribution<float> normal;
    x_.resize(static_cast<size_t>(rows_ * (model.ffn + model.queries)));
    for (float& value : x_) {
      value = normal(random);
    }
    y_.resize(
        static_cast<size_t>(rows_ * std::max(model.vocabulary, 2 * model.ffn))
    );
    if (settings.values.at("head") == "0") {
      layers_.pop_back();
    }
  }

  void run() {
    double end = os::now() + settings_.number("seconds");
    std::vector<double> products;
    std::vector<double> reads;
    double macs = 0;
    double bytes = 0;
    for (const Layer& layer : layers_) {
      macs +=
          static_cast<double>(layer.rows * layer.weight->cols * rows_of(layer));
      bytes += static_cast<double>(layer.bytes);
    }
    while (os::now() < end || products.empty()) {
      sample(products, [&] { step(); });
      sample(reads, [&] { read(); });
    }
    std::printf(
        "%s %s, %s, %d threads, %ld rows, %s %s: %.1f MB\n",
        settings_.model.c_str(),
        settings_.format().describe().c_str(),
        std::string(isa_name(isa_)).c_str(),
        pool_.size(),
        static_cast<long>(rows_),
        settings_.values.at("family").c_str(),
        settings_.values.at("mode").c_str(),
        bytes / 1e6
    );
    report(products, bytes, "GB/s  product");
    report(products, macs, "GMAC/s product");
    report(reads, static_cast<double>(arena_->bytes().size()), "GB/s  read");
    for (const auto& [name, seconds] : parts_) {
      std::printf(
          "  %-8s %8.2f GB/s %8.2f GMAC/s %8.2f us\n",
          name.c_str(),
          seconds.bytes / seconds.seconds / 1e9,
          seconds.macs / seconds.seconds / 1e9,
          seconds.seconds / seconds.calls * 1e6
      );
    }
  }

 private:
  struct Sums {
    double seconds = 0;
    double bytes = 0;
    double macs = 0;
    double calls = 0;
  };

  // Samples in which a thread lost its core do not count.
  template <typename F>
  void sample(std::vector<double>& seconds, F f) {
    double cpu = cpu_seconds();
    double wall = os::now();
    f();
    wall = os::now() - wall;
    cpu = cpu_seconds() - cpu;
    if (cpu > 0.95 * wall * pool_.size() || seconds.empty()) {
      seconds.push_back(wall);
    }
  }

  void step() {
    bool prefill = settings_.values.at("family") == "prefill";
    bool exact = settings_.values.at("mode") == "float32";
    bool split = settings_.values.at("split") == "1";
    for (Layer& layer : layers_) {
      int64_t out = layer.epilogue.gate ? layer.rows / 2 : layer.rows;
      double start = split ? os::now() : 0;
      linear(
          *layer.weight,
          x_.data(),
          layer.weight->cols,
          rows_of(layer),
          prefill ? Family::prefill : Family::decode,
          exact ? ActivationMode::float32 : ActivationMode::int8,
          isa_,
          layer.epilogue,
          y_.data(),
          out,
          scratch_,
          pool_
      );
      if (split) {
        Sums& sums = parts_[layer.name];
        sums.seconds += os::now() - start;
        sums.bytes += static_cast<double>(layer.bytes);
        sums.macs += static_cast<double>(
            layer.rows * layer.weight->cols * rows_of(layer)
        );
        sums.calls += 1;
      }
    }
  }

  // Of a prompt's rows only the last reaches the head.
  int64_t rows_of(const Layer& layer) const {
    bool prefill = settings_.values.at("family") == "prefill";
    return prefill && layer.name == "head" ? 1 : rows_;
  }

  void read() {
    std::span<const std::byte> bytes = arena_->bytes();
    pool_.run([&](int thread, int threads) {
      size_t share = bytes.size() / static_cast<size_t>(threads);
      uint64_t sum =
          read_all(bytes.subspan(static_cast<size_t>(thread) * share, share));
      asm volatile("" : : "r"(sum));
    });
  }

  const Settings& settings_;
  ThreadPool pool_;
  MatmulScratch scratch_;
  Isa isa_;
  std::vector<Layer> layers_;
  std::shared_ptr<Arena> arena_;
  int64_t rows_ = 1;
  std::vector<float> x_;
  std::vector<float> y_;
  std::map<std::string, Sums> parts_;
};

}  // namespace

}  // namespace mlxcel::backend::cpu

int main(int argc, char** argv) {
  try {
    mlxcel::backend::cpu::Settings settings;
    for (int i = 1; i < argc; ++i) {
      settings.set(argv[i]);
    }
    mlxcel::backend::cpu::Bench(settings).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
