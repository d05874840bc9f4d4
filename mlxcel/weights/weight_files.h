#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mlxcel/weights/weight_map.h"

namespace mlxcel {

class MappedFile;

/// The files that the weights of a loaded model lie in. Once one of them could
/// not be read, or was written to while in use, what is computed from it is
/// not the model any more: the weights are unusable until they are loaded
/// again (design 7).
class WeightFiles {
 public:
  void add(const Weight& weight);
  /// A look at each file, quick enough for every step.
  /// Throws Error(io) naming the file, and again at every later call.
  void check();
  /// Throws the same if check() has thrown, without a look.
  void throw_if_broken() const;

 private:
  std::string find_fault() const;

  std::vector<std::shared_ptr<const MappedFile>> files_;  // each once
  std::string broken_;  // why the weights can't be used any more
};

}  // namespace mlxcel
