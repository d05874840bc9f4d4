#pragma once

#include <string>
#include <vector>

namespace mlxcel::convert {

/// Copies what a checkpoint has beside its weights: tokenizer, templates,
/// generation_config.json and so on, everything but config.json, files of
/// weights in any format, and what describes their quantisation. Adds the
/// names to `copied`, and what was left out to `notes`. Links are followed as
/// far as a model may (core/containment.h). Throws Error naming the file.
void copy_side_files(
    const std::string& from,
    const std::string& to,
    std::vector<std::string>& copied,
    std::vector<std::string>& notes
);

}  // namespace mlxcel::convert
