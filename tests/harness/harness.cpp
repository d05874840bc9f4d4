#include "tests/harness/harness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>

#include "mlxcel/backend/cpu/isa.h"
#include "mlxcel/backend/factory.h"
#include "tests/harness/cases.h"

namespace mlxcel::test {

namespace {

constexpr const char* kIsaVariable = "MLXCEL_CPU_ISA";

const backend::BackendFactory& factory_of(const std::string& name) {
  static const std::vector<backend::BackendFactory> built =
      backend::built_backends();
  for (const backend::BackendFactory& factory : built) {
    if (factory.name == name) {
      return factory;
    }
  }
  throw std::runtime_error(name + " was not built");
}

// Exact results of `graph`, once per case and process.
const Rows& definition(const Case& item) {
  static std::map<std::string, Rows> known;
  auto found = known.find(item.name);
  if (found == known.end()) {
    auto graph = factory_of("graph").create("cpu", {.exact = true});
    found = known.emplace(item.name, item.run(*graph)).first;
  }
  return found->second;
}

bool supports(const backend::Backend& backend, const Case& item) {
  for (const WeightFormat& format : item.formats) {
    if (!backend.supports(item.operation, format)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::vector<Suite> suites() {
  return {
      {"linear_affine", affine_cases},
      {"linear_block_float", block_float_cases},
      {"linear_dense", dense_cases},
      {"linear_ragged", ragged_cases},
      {"linear_merged", merged_cases},
      {"linear_epilogue", epilogue_cases},
      {"logits", logits_cases},
      {"experts", experts_cases},
      {"embed", embed_cases},
      {"norm", norm_cases},
      {"rows", row_cases},
      {"argmax", argmax_cases},
      {"attend", attend_cases},
      {"attend_steps", attend_step_cases},
  };
}

std::string Subject::label() const {
  return backend + "_" + device + (isa.empty() ? "" : "_" + isa);
}

std::unique_ptr<backend::Backend> Subject::make(bool exact) const {
  if (isa.empty()) {
    return factory_of(backend).create(device, {.exact = exact});
  }
  setenv(kIsaVariable, isa.c_str(), 1);
  auto made = factory_of(backend).create(device, {.exact = exact});
  unsetenv(kIsaVariable);
  return made;
}

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const backend::BackendFactory& factory : backend::built_backends()) {
    for (const std::string& device : factory.devices()) {
      if (factory.name != "cpu") {
        all.push_back({factory.name, device, "", false});
        continue;
      }
      for (backend::cpu::Isa isa : backend::cpu::available_isas()) {
        std::string name(backend::cpu::isa_name(isa));
        all.push_back({factory.name, device, name, true});
      }
    }
  }
  return all;
}

double row_error(const Rows& got, const Rows& expected) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (got.cols != expected.cols ||
      got.values.size() != expected.values.size()) {
    return infinite;
  }
  double norm = 0;
  for (float value : expected.values) {
    norm += double(value) * value;
  }
  norm = std::sqrt(norm / static_cast<double>(expected.values.size()));
  norm = std::max(norm, expected.usual);
  double worst = 0;
  for (size_t row = 0; row < got.values.size(); row += got.cols) {
    double sum = 0;
    for (size_t i = row; i < row + got.cols; ++i) {
      double difference = double(got.values[i]) - expected.values[i];
      sum += difference * difference;
    }
    double error = std::sqrt(sum / static_cast<double>(got.cols));
    if (!std::isfinite(error)) {
      return infinite;
    }
    worst = std::max(worst, norm > 0 ? error / norm : error);
  }
  return worst;
}

void compare(
    const std::vector<Case>& cases, const Subject& subject, bool exact
) {
  std::set<std::string> names;
  int ran = 0;
  double worst = 0;
  for (const Case& item : cases) {
    SCOPED_TRACE(item.name + " on " + subject.label());
    EXPECT_TRUE(names.insert(item.name).second) << "two cases of one name";
    auto backend = subject.make(exact);
    if (!supports(*backend, item)) {
      EXPECT_FALSE(item.required) << "not supported";
      continue;
    }
    ++ran;
    double bound = exact ? item.bounds.exact : item.bounds.quick;
    double error = row_error(item.run(*backend), definition(item));
    EXPECT_LE(error, bound);
    worst = std::max(worst, error);
  }
  if (ran == 0) {
    GTEST_SKIP() << subject.label() << " has none of these formats";
  }
  testing::Test::RecordProperty("cases", ran);
  testing::Test::RecordProperty("worst", std::to_string(worst * 1e6) + " ppm");
}

}  // namespace mlxcel::test
