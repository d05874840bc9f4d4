// Logits of a checkpoint, for tests/oracle/test_formats.py.
//
//   logits_probe DIR OUT exact|default cpu|graph directory|weights TOKEN...
//
// OUT is raw float32 [tokens, vocabulary]. Remarks of the library go to
// standard error.

#include <cstdio>
#include <string>
#include <vector>

#include "mlxcel/backend/factory.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/log.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/engine/score.h"
#include "mlxcel/loading/load_model.h"
#include "mlxcel/weights/shards.h"

namespace {

using namespace mlxcel;

std::vector<float> logits_of(
    LanguageModel& model, const std::vector<int32_t>& tokens
) {
  Engine engine(model, static_cast<int64_t>(tokens.size()));
  ScoreParams params;
  params.keep_logits = true;
  return score(engine, tokens, params).logits;
}

void run(const std::vector<std::string>& arguments) {
  const std::string& directory = arguments.at(0);
  LoadOptions options;
  options.tokenizer = false;
  options.backend.device = "cpu";
  options.backend.numerics.exact = arguments.at(2) == "exact";
  options.backend.reference = arguments.at(3) == "graph";
  std::vector<int32_t> tokens;
  for (size_t i = 5; i < arguments.size(); ++i) {
    tokens.push_back(static_cast<int32_t>(parse_int(arguments[i]).value()));
  }
  std::vector<float> logits;
  if (arguments.at(4) == "weights") {
    LoadedModel model =
        load_model_from_weights(directory, load_weights(directory), options);
    logits = logits_of(*model.model, tokens);
  } else {
    Checkpoint checkpoint = load_model(directory, options);
    logits = logits_of(*checkpoint.model.model, tokens);
  }
  AtomicFile out(arguments.at(1));
  out.write(logits.data(), logits.size() * sizeof(float));
  out.commit();
}

}  // namespace

int main(int argc, char** argv) {
  log_to_stderr(LogLevel::info);
  try {
    run({argv + 1, argv + argc});
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.message().c_str());
    return 1;
  }
  return 0;
}
