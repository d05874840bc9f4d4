#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mlxcel/backend/backend.h"

namespace mlxcel::test {

/// What an operation gave, row by row.
struct Rows {
  int64_t cols = 0;
  std::vector<float> values;
  /// RMS that the values would have on average, where a few of them may all be
  /// small by chance; 0: they tell themselves.
  double usual = 0;
};

/// How far a row may be from the definition: RMS of its differences relative
/// to the RMS of all values, or to the usual one if that is larger.
struct Bounds {
  double exact = 0;
  double quick = 0;  // default mode
};

/// One operation with one format and one shape. `run` makes its own inputs,
/// the same for every backend.
struct Case {
  std::string name;
  backend::Operation operation = backend::Operation::linear;
  /// Asked of supports(); a case whose format a backend lacks is left out,
  /// unless it is one that every backend must have.
  std::vector<WeightFormat> formats;
  bool required = true;
  Bounds bounds;
  std::function<Rows(backend::Backend&)> run;
};

/// A list of cases, made anew when asked for.
struct Suite {
  std::string name;
  std::vector<Case> (*cases)();
};

/// Every operation. A new one adds a line and a list.
std::vector<Suite> suites();

/// A backend under test: one that was built in, on one of its devices, with
/// one of its instruction sets.
struct Subject {
  std::string backend;
  std::string device;
  std::string isa;  // MLXCEL_CPU_ISA, or empty
  /// A row's bits depend neither on its neighbours nor on the threads.
  bool stable = false;

  std::string label() const;
  std::unique_ptr<backend::Backend> make(bool exact) const;
};

/// All backends that were built in, on all devices of this host. A new one
/// adds nothing here.
std::vector<Subject> subjects();

/// The largest error of a row (see Bounds); infinite if shapes differ.
double row_error(const Rows& got, const Rows& expected);

/// Runs the cases on the subject and on `graph` in exact mode, and checks the
/// bounds.
void compare(
    const std::vector<Case>& cases, const Subject& subject, bool exact
);

}  // namespace mlxcel::test
