#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace mlxcel::apps {

/// A subcommand adds itself to the program and sets the callback that runs
/// it. Callbacks throw mlxcel::Error; main maps it to an exit status.
void add_generate(CLI::App& program);
void add_run(CLI::App& program);
void add_download(CLI::App& program);
void add_convert(CLI::App& program);
void add_arch(CLI::App& program);
void add_inspect(CLI::App& program);
void add_list(CLI::App& program);
void add_rm(CLI::App& program);
void add_bench(CLI::App& program);
void add_synth(CLI::App& program);
void add_score(CLI::App& program);
void add_template(CLI::App& program);
void add_tokenize(CLI::App& program);
void add_detokenize(CLI::App& program);
void add_completion(CLI::App& program);

/// Text of --version.
std::string version_text();

}  // namespace mlxcel::apps
