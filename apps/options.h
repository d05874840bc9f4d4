#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mlxcel/engine/generate.h"
#include "mlxcel/hub/resolve.h"
#include "mlxcel/loading/load_model.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace mlxcel::apps {

/// `--models-dir PATH`.
CLI::Option* add_models_dir(CLI::App& command, std::string& models_dir);

/// Which model: the same for every command that takes one.
struct ModelReference {
  std::string text;  // a path, OWNER/NAME or NAME
  std::string models_dir;
  std::string revision;
  bool offline = false;

  /// `names`: "-m,--model", with ",model" for a positional argument too.
  void add_to(CLI::App& command, const std::string& names);
  /// Throws Error(usage) without a model.
  void require() const;
  /// Its directory (hub/resolve.h), fetched if need be; what is announced
  /// goes to standard error. Throws what require() and resolve() throw.
  std::string directory() const;
  /// What resolve() is asked, with nobody to hear announcements.
  hub::ResolveRequest request() const;
};

/// Which model, and where it runs.
struct ModelOptions {
  ModelReference model;
  std::string device;
  int threads = 0;  // 0: one per usable core
  bool reference = false;
  bool exact = false;

  /// `-m MODEL` or the positional argument, and the device flags.
  void add_to(CLI::App& command);
  /// Sets up the thread pool and gives what load_model() takes.
  LoadOptions load_options() const;
};

/// Flags of the sampling group; unset ones leave room for the checkpoint's
/// own defaults.
struct SamplingOptions {
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<int64_t> top_k;
  double min_p = 0;
  double repetition_penalty = 1;
  int64_t repeat_last_n = 64;
  int64_t seed = -1;
  std::vector<std::string> stop;
  int64_t max_tokens = -1;
  int64_t context = 0;  // 0: the model's own window

  void add_to(CLI::App& command);
  /// Flag, else the checkpoint's default, else greedy.
  GenerateParams params(const Checkpoint& checkpoint) const;
};

/// Tokens a sequence may hold where a config declares no window.
constexpr int64_t kDefaultContext = 4096;

/// The window a checkpoint runs with. Throws Error(usage) if more is asked
/// for than it has.
int64_t resolve_context(const Checkpoint& checkpoint, int64_t asked);
/// The same for a declared window; 0: none is declared.
int64_t resolve_context(int64_t window, int64_t asked);

}  // namespace mlxcel::apps
