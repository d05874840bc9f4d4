#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "mlxcel/core/os.h"
#include "mlxcel/loading/estimate/budget.h"
#include "mlxcel/loading/estimate/memory_estimate.h"
#include "tests/unit/support/expect_error.h"
#include "tests/unit/support/temporary_directory.h"

namespace mlxcel {
namespace {

/// A variable of the environment while it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    ::setenv(name, value, 1);
  }
  ~Variable() {
    ::unsetenv(name_);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(MemoryBudget, Sizes) {
  EXPECT_EQ(parse_size("4096"), 4096u);
  EXPECT_EQ(parse_size("2K"), 2048u);
  EXPECT_EQ(parse_size("512M"), 536870912u);
  EXPECT_EQ(parse_size("1.5g"), 1610612736u);
  EXPECT_EQ(parse_size("0"), 0u);
  for (const char* wrong :
       {"",
        "G",
        "-1",
        "1T",
        "1 G",
        "nan",
        "inf",
        "1e9",
        "0x10",
        "1.5.2",
        "99999999999999999999G"}) {
    EXPECT_EQ(parse_size(wrong), std::nullopt) << wrong;
  }
}

TEST(MemoryBudget, TheFirstThatIsKnown) {
  Budget budget = memory_budget({"3G", 5, 7, std::nullopt});
  EXPECT_EQ(budget.bytes, uint64_t{3} << 30);
  EXPECT_EQ(budget.source, "MLXCEL_MEMORY_LIMIT");
  budget = memory_budget({"0", 5, 7, std::nullopt});
  EXPECT_EQ(budget.bytes, 5u);
  EXPECT_EQ(budget.source, "MemAvailable");
  EXPECT_EQ(memory_budget({"", 0, 7, std::nullopt}).bytes, 7u);
  budget = memory_budget({"", 0, 0, std::nullopt});
  EXPECT_EQ(budget.bytes, 0u);
  EXPECT_EQ(budget.source, "unknown");
  EXPECT_ERROR(memory_budget({"lots", 5, 7, {}}), "MLXCEL_MEMORY_LIMIT");
}

TEST(MemoryBudget, ControlGroupsBoundIt) {
  EXPECT_EQ(memory_budget({"", 5, 7, 3}).bytes, 3u);
  EXPECT_EQ(memory_budget({"", 5, 7, 6}).bytes, 5u);
  EXPECT_EQ(memory_budget({"", 0, 0, 6}).bytes, 6u);
  // Nothing left is not "unknown".
  EXPECT_EQ(memory_budget({"", 5, 7, 0}).bytes, 1u);
  EXPECT_EQ(memory_budget({"9", 5, 7, 3}).bytes, 9u);
}

TEST(MemoryBudget, HeadroomFactor) {
  EXPECT_EQ(headroom_factor(), 1.2);
  for (auto [text, factor] :
       {std::pair("1.5", 1.5),
        {"1", 1.0},
        {"0.3", 1.0},
        {"0", 1.2},
        {"-2", 1.2},
        {"much", 1.2},
        {"nan", 1.2},
        {"inf", 1.2}}) {
    Variable variable("MLXCEL_HEADROOM_FACTOR", text);
    EXPECT_EQ(headroom_factor(), factor) << text;
  }
  Variable lost("MLXCEL_ACTIVATION_MULT", "2");
  EXPECT_ERROR(headroom_factor(), "MLXCEL_ACTIVATION_MULT");
}

TEST(MemoryEstimate, Sums) {
  MemoryEstimate estimate;
  estimate.factor = 1.5;
  estimate.weights = Figure::of(1000);
  estimate.kv = Figure::of(200);
  estimate.activations = Figure::of(30);
  EXPECT_EQ(estimate.net(), 1230u);
  EXPECT_EQ(estimate.headroom(), 600u);
  EXPECT_EQ(estimate.total(), 1830u);
  EXPECT_EQ(estimate.fits({1830, ""}), true);
  EXPECT_EQ(estimate.fits({1829, ""}), false);
  EXPECT_EQ(estimate.fits({0, ""}), std::nullopt);
  estimate.activations = Figure::unknown("not run");
  EXPECT_EQ(estimate.net(), std::nullopt);
  EXPECT_EQ(estimate.total(), std::nullopt);
  EXPECT_EQ(estimate.known(), 1200u);
  // Too much already, or not to be said.
  EXPECT_EQ(estimate.fits({1799, ""}), false);
  EXPECT_EQ(estimate.fits({1800, ""}), std::nullopt);
  estimate.kv = Figure::of(UINT64_MAX);
  EXPECT_EQ(estimate.known(), UINT64_MAX);
  EXPECT_EQ(estimate.fits({uint64_t{1} << 62, ""}), false);
}

std::string group_file(
    const TemporaryDirectory& root,
    const std::string& path,
    const std::string& text
) {
  std::filesystem::create_directories(
      std::filesystem::path(root / path).parent_path()
  );
  return root.write(path, text);
}

TEST(ControlGroups, TheTightestOfAllLevels) {
  TemporaryDirectory root;
  EXPECT_EQ(os::cgroup_memory_room(root.path()), std::nullopt);
  group_file(root, "proc/self/cgroup", "0::/outer/inner\n");
  EXPECT_EQ(os::cgroup_memory_room(root.path()), std::nullopt);
  group_file(root, "sys/fs/cgroup/outer/inner/memory.max", "max\n");
  EXPECT_EQ(os::cgroup_memory_room(root.path()), std::nullopt);
  group_file(root, "sys/fs/cgroup/outer/memory.max", "1000\n");
  group_file(root, "sys/fs/cgroup/outer/memory.current", "900\n");
  EXPECT_EQ(os::cgroup_memory_room(root.path()), 100u);
  // Files that can be dropped are not in the way.
  group_file(
      root,
      "sys/fs/cgroup/outer/memory.stat",
      "anon 1\nactive_file 5\ninactive_file 300\n"
  );
  EXPECT_EQ(os::cgroup_memory_room(root.path()), 400u);
  group_file(root, "sys/fs/cgroup/outer/inner/memory.max", "50\n");
  group_file(root, "sys/fs/cgroup/outer/inner/memory.current", "60\n");
  EXPECT_EQ(os::cgroup_memory_room(root.path()), 0u);
}

TEST(ControlGroups, VersionOne) {
  TemporaryDirectory root;
  group_file(
      root, "proc/self/cgroup", "9:cpu,cpuacct:/a\n4:memory:/a\n1:name=x:/\n"
  );
  group_file(
      root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"
  );
  EXPECT_EQ(os::cgroup_memory_room(root.path()), std::nullopt);
  group_file(root, "sys/fs/cgroup/memory/a/memory.limit_in_bytes", "800");
  group_file(root, "sys/fs/cgroup/memory/a/memory.usage_in_bytes", "500");
  group_file(
      root, "sys/fs/cgroup/memory/a/memory.stat", "total_inactive_file 100\n"
  );
  EXPECT_EQ(os::cgroup_memory_room(root.path()), 400u);
}

TEST(ControlGroups, NoiseIsIgnored) {
  TemporaryDirectory root;
  group_file(root, "proc/self/cgroup", "\n::\nx\n0:\n0::\n0::a\n");
  group_file(root, "sys/fs/cgroup/memory.max", "12 34");
  group_file(root, "sys/fs/cgroup/memory.current", "-5");
  EXPECT_EQ(os::cgroup_memory_room(root.path()), 12u);
}

}  // namespace
}  // namespace mlxcel
