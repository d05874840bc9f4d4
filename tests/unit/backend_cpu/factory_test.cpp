#include "mlxcel/backend/factory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>

#include "mlxcel/backend/cpu/cpu_backend.h"
#include "mlxcel/core/error.h"

namespace mlxcel::test {

namespace {

using backend::BackendChoice;
using backend::built_backends;
using backend::make_backend;
using backend::Numerics;
using backend::cpu::ActivationMode;
using backend::cpu::default_options;

// Sets a variable for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) {
      old_ = old;
    }
    ::setenv(name, value, 1);
  }
  ~Variable() {
    if (old_) {
      ::setenv(name_, old_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

std::string usage_error(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.message();
  }
  return "";
}

bool graph_is_built() {
  auto all = built_backends();
  return std::any_of(all.begin(), all.end(), [](const auto& backend) {
    return backend.name == "graph";
  });
}

BackendChoice choice(const char* device, bool reference = false) {
  return {device, reference, {}};
}

// The tests may run with these set.
class CpuFactory : public testing::Test {
 protected:
  Variable device{"MLXCEL_DEVICE", ""};
  Variable reference{"MLXCEL_REFERENCE", ""};
  Variable activations{"MLXCEL_CPU_ACT", ""};
};

TEST_F(CpuFactory, TheDirectBackendServesTheCpu) {
  EXPECT_EQ(make_backend(choice("cpu"))->name(), "cpu");
  Variable variable("MLXCEL_DEVICE", "cpu");
  EXPECT_EQ(make_backend({})->name(), "cpu");
  auto exact = make_backend({"", false, {.exact = true}});
  EXPECT_TRUE(exact->numerics().exact);
}

TEST_F(CpuFactory, TheOptionWinsOverTheVariable) {
  Variable variable("MLXCEL_DEVICE", "toaster");
  EXPECT_EQ(make_backend(choice("cpu"))->name(), "cpu");
  EXPECT_EQ(
      usage_error([] { make_backend({}); }),
      "MLXCEL_DEVICE: unknown device \"toaster\" (cpu, gpu, metal, cuda)"
  );
  EXPECT_EQ(
      usage_error([] { make_backend(choice("tpu")); }),
      "--device: unknown device \"tpu\" (cpu, gpu, metal, cuda)"
  );
}

TEST_F(CpuFactory, AKnownDeviceThatIsNotHereIsNamed) {
  for (const auto& backend : built_backends()) {
    auto devices = backend.devices();
    if (std::find(devices.begin(), devices.end(), "metal") != devices.end()) {
      GTEST_SKIP() << "there is a Metal device";
    }
  }
  std::string message = usage_error([] { make_backend(choice("metal")); });
  EXPECT_NE(message.find("\"metal\""), std::string::npos) << message;
  EXPECT_NE(message.find("cpu"), std::string::npos) << message;
}

TEST_F(CpuFactory, ReferenceIsTheGraphBackend) {
  for (const char* value : {"", "0"}) {
    Variable variable("MLXCEL_REFERENCE", value);
    EXPECT_EQ(make_backend(choice("cpu"))->name(), "cpu");
  }
  EXPECT_EQ(
      usage_error([] {
        Variable variable("MLXCEL_REFERENCE", "yes");
        make_backend({});
      }),
      "MLXCEL_REFERENCE: expected 0 or 1, got \"yes\""
  );
  Variable variable("MLXCEL_REFERENCE", "1");
  if (graph_is_built()) {
    EXPECT_EQ(make_backend(choice("cpu"))->name(), "graph");
    EXPECT_EQ(make_backend(choice("cpu", true))->name(), "graph");
  } else {
    std::string message = usage_error([] { make_backend({}); });
    EXPECT_NE(message.find("graph"), std::string::npos) << message;
  }
}

TEST_F(CpuFactory, ActivationsFollowTheVariable) {
  EXPECT_EQ(default_options({}).activations, ActivationMode::int8);
  EXPECT_TRUE(default_options({}).half_state);
  {
    Variable variable("MLXCEL_CPU_ACT", "f32");
    EXPECT_EQ(default_options({}).activations, ActivationMode::float32);
    EXPECT_TRUE(default_options({}).half_state);
  }
  {
    Variable variable("MLXCEL_CPU_ACT", "int8");
    EXPECT_EQ(default_options({}).activations, ActivationMode::int8);
    Numerics exact{.exact = true};
    EXPECT_EQ(default_options(exact).activations, ActivationMode::float32);
    EXPECT_FALSE(default_options(exact).half_state);
  }
  Variable variable("MLXCEL_CPU_ACT", "int4");
  EXPECT_EQ(
      usage_error([] { default_options({}); }),
      "MLXCEL_CPU_ACT: expected int8 or f32, got \"int4\""
  );
}

}  // namespace

}  // namespace mlxcel::test
