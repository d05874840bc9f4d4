#include "mlxcel/core/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "mlxcel/core/fault_guard.h"
#include "mlxcel/core/os.h"
#include "tests/unit/support/expect_error.h"
#include "tests/unit/support/temporary_directory.h"

namespace mlxcel {
namespace {

TEST(File, ReadsUpToTheLimit) {
  TemporaryDirectory dir;
  std::string path = dir.write("a", "hello");
  EXPECT_EQ(read_file(path, 5), "hello");
  EXPECT_ERROR(read_file(path, 4), path + ": 5 bytes, at most 4 allowed");
  EXPECT_ERROR(read_file(dir / "none", 4), "none");
}

TEST(File, RefusesWhatIsNoRegularFile) {
  TemporaryDirectory dir;
  EXPECT_ERROR(read_file(dir.path(), 10), "is not a regular file");
  EXPECT_ERROR(MappedFile::open("/dev/zero"), "is not a regular file");
  std::string fifo = dir / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_ERROR(MappedFile::open(fifo), "is not a regular file");
  EXPECT_ERROR(read_file(std::string("a\0b", 3), 10), "NUL");
}

TEST(File, PathPieces) {
  EXPECT_EQ(parent_path("a/b/c"), "a/b");
  EXPECT_EQ(parent_path("c"), ".");
  EXPECT_EQ(parent_path("/c"), "/");
  EXPECT_EQ(base_name("a/b/"), "b");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
}

TEST(AtomicFile, AppearsOnlyWithCommit) {
  TemporaryDirectory dir;
  std::string path = dir / "out";
  {
    AtomicFile file(path);
    file.write("half");
  }
  EXPECT_TRUE(os::list_directory(dir.path()).empty());
  AtomicFile file(path);
  file.write(std::string(3 << 20, 'x'));
  EXPECT_FALSE(file_exists(path));
  file.commit();
  EXPECT_EQ(read_file(path, 4 << 20).size(), size_t{3} << 20);
  EXPECT_EQ(os::list_directory(dir.path()).size(), 1u);
}

TEST(AtomicFile, FullDiskLeavesNothing) {
  TemporaryDirectory dir;
  std::string path = dir / "out";
  rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  rlimit small = {1 << 20, old.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_ERROR(
      {
        AtomicFile file(path);
        file.write(std::string(2 << 20, 'x'));
        file.commit();
      },
      "cannot write " + path
  );
  setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_TRUE(os::list_directory(dir.path()).empty());
}

TEST(FaultGuard, ShrunkenFileReadsAsZeroAndIsMarked) {
  FaultGuard::install();
  TemporaryDirectory dir;
  std::string path = dir.write("w", std::string(64 << 10, 'x'));
  auto file = MappedFile::open(path);
  EXPECT_EQ(file->bytes()[60000], std::byte{'x'});
  ASSERT_EQ(truncate(path.c_str(), 4096), 0);
  EXPECT_EQ(file->bytes()[10], std::byte{'x'});
  EXPECT_FALSE(file->faulted());
  EXPECT_EQ(file->bytes()[60000], std::byte{0});
  EXPECT_TRUE(file->faulted());
  // Another thread on another page of it fares the same.
  std::byte seen{1};
  std::thread([&] { seen = file->bytes()[20000]; }).join();
  EXPECT_EQ(seen, std::byte{0});
}

TEST(FaultGuardDeathTest, FaultElsewhereGoesToTheDefault) {
  EXPECT_EXIT(
      {
        FaultGuard::install();
        raise(SIGBUS);
      },
      testing::KilledBySignal(SIGBUS),
      ""
  );
}

}  // namespace
}  // namespace mlxcel
