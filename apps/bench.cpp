#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/bandwidth.h"
#include "apps/command.h"
#include "apps/options.h"
#include "mlxcel/core/os.h"
#include "mlxcel/core/thread_pool.h"
#include "mlxcel/engine/engine.h"
#include "mlxcel/weights/shards.h"
#include "mlxcel_version.h"

namespace mlxcel::apps {

namespace {

struct BenchOptions {
  ModelOptions model;
  int64_t prompt = 512;
  int64_t generate = 128;
  int repetitions = 3;
  bool json = false;
};

struct Sample {
  double prefill = 0;    // tokens/s
  double decode = 0;     // tokens/s
  double bandwidth = 0;  // bytes/s read, measured beside
};

// Tokens spread over the vocabulary: the speed doesn't depend on which.
std::vector<int32_t> made_up_tokens(int64_t count, int64_t vocabulary) {
  std::vector<int32_t> tokens;
  uint64_t state = 1;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    tokens.push_back(
        static_cast<int32_t>((state >> 33) % static_cast<uint64_t>(vocabulary))
    );
  }
  return tokens;
}

Sample measure(Engine& engine, const BenchOptions& options) {
  Sample sample;
  std::unique_ptr<Sequence> sequence = engine.open();
  std::vector<int32_t> prompt = made_up_tokens(
      std::max<int64_t>(options.prompt, 1), engine.model().vocabulary()
  );
  double start = os::now();
  backend::Tensor logits = engine.prefill(*sequence, prompt, prefill_chunk());
  int32_t token = 0;
  engine.model().backend().argmax(logits, {&token, 1});
  double prefilled = os::now();
  for (int64_t i = 0; i < options.generate; ++i) {
    StepInput input{
        sequence.get(), {&token, 1}, backend::Role::generated, Logits::last};
    logits = engine.step({&input, 1});
    engine.model().backend().argmax(logits, {&token, 1});
  }
  double done = os::now();
  sample.prefill = static_cast<double>(prompt.size()) / (prefilled - start);
  sample.decode = static_cast<double>(options.generate) / (done - prefilled);
  return sample;
}

struct Spread {
  double least;
  double median;
  double most;
};

Spread spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values.front(), values[values.size() / 2], values.back()};
}

std::vector<double> column(
    const std::vector<Sample>& samples, double Sample::*member
) {
  std::vector<double> values;
  for (const Sample& sample : samples) {
    values.push_back(sample.*member);
  }
  return values;
}

struct Bytes {
  uint64_t weights = 0;
  /// What one decode step must read: the weights and the state of a context
  /// half way through the reply.
  uint64_t per_token = 0;
  uint64_t resident = 0;
};

void print_row(const char* name, const std::vector<double>& values) {
  Spread s = spread(values);
  fmt::print(
      "{:<18}{:>10.1f}  ({:.1f}-{:.1f})\n", name, s.median, s.least, s.most
  );
}

void print_text(
    const Checkpoint& checkpoint,
    const Bytes& bytes,
    const BenchOptions& options,
    const std::vector<Sample>& samples
) {
  fmt::print(
      "{}\n{}, {} tokens prompt, {} generated, {} times\n\n",
      checkpoint.model.directory,
      checkpoint.model.backend->describe(),
      options.prompt,
      options.generate,
      samples.size()
  );
  print_row("prefill tok/s", column(samples, &Sample::prefill));
  print_row("decode tok/s", column(samples, &Sample::decode));
  double decode = spread(column(samples, &Sample::decode)).median;
  double bandwidth = spread(column(samples, &Sample::bandwidth)).median;
  fmt::print(
      "weights           {:>10.1f} MB\n"
      "read bandwidth    {:>10.1f} GB/s, decode reads at {:.0f} % of it\n"
      "resident          {:>10.1f} MB\n",
      static_cast<double>(bytes.weights) * 1e-6,
      bandwidth * 1e-9,
      100 * decode * static_cast<double>(bytes.per_token) / bandwidth,
      static_cast<double>(bytes.resident) * 1e-6
  );
}

void print_json(
    const Checkpoint& checkpoint,
    const Bytes& bytes,
    const BenchOptions& options,
    const Sample& first,
    const std::vector<Sample>& samples
) {
  nlohmann::ordered_json out;
  out["mlxcel_version"] = MLXCEL_VERSION;
  out["commit"] = MLXCEL_COMMIT;
  out["model"] = checkpoint.model.directory;
  out["backend"] = checkpoint.model.backend->describe();
  out["threads"] = ThreadPool::instance().size();
  out["prompt_tokens"] = options.prompt;
  out["generated_tokens"] = options.generate;
  out["prefill_tok_s"] = column(samples, &Sample::prefill);
  out["decode_tok_s"] = column(samples, &Sample::decode);
  std::vector<double> bandwidth = column(samples, &Sample::bandwidth);
  for (double& value : bandwidth) {
    value *= 1e-9;
  }
  out["read_bandwidth_gb_s"] = bandwidth;
  out["first_prefill_tok_s"] = first.prefill;
  out["first_decode_tok_s"] = first.decode;
  out["weight_bytes"] = bytes.weights;
  out["decode_bytes_per_token"] = bytes.per_token;
  out["load_s"] = checkpoint.load_seconds;
  out["peak_resident_bytes"] = bytes.resident;
  fmt::print("{}\n", out.dump(2));
}

void run(const BenchOptions& options) {
  std::string directory = options.model.model.directory();
  LoadOptions load = options.model.load_options();
  load.tokenizer = false;
  Checkpoint checkpoint = load_model(directory, load);
  Engine engine(*checkpoint.model.model, options.prompt + options.generate + 1);
  Sample first = measure(engine, options);  // and warms up
  // Before the bandwidth is measured, which takes memory of its own.
  Bytes bytes;
  bytes.resident = os::peak_resident_bytes();
  std::vector<Sample> samples;
  for (int i = 0; i < options.repetitions; ++i) {
    samples.push_back(measure(engine, options));
    samples.back().bandwidth = measure_read_bandwidth(ThreadPool::instance());
  }
  bytes.weights = weight_bytes(checkpoint.model.directory);
  bytes.per_token =
      bytes.weights + engine.state_bytes(options.prompt + options.generate / 2);
  options.json ? print_json(checkpoint, bytes, options, first, samples)
               : print_text(checkpoint, bytes, options, samples);
}

}  // namespace

void add_bench(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "bench", "Measure prefill and decode speed of a model"
  );
  command->footer("Example:\n  mlxcel bench MODEL -p 512 -n 128 --json");
  auto options = std::make_shared<BenchOptions>();
  options->model.add_to(*command);
  command->add_option("-p,--prompt-tokens", options->prompt, "Prompt length")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24));
  command->add_option("-n,--generate-tokens", options->generate, "Reply length")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24));
  command->add_option("-r,--repetitions", options->repetitions, "Repetitions")
      ->check(CLI::Range(1, 1000));
  command->add_flag("--json", options->json, "One JSON object");
  command->callback([options] { run(*options); });
}

}  // namespace mlxcel::apps
