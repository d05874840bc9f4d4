#include "mlxcel/core/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
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

// A process may have some 65,000 pieces of memory: one for each page of a
// large file that was cut would be too many.
TEST(FaultGuard, ManyScatteredFaultsAreAbsorbed) {
  FaultGuard::install();
  TemporaryDirectory dir;
  std::string path = dir.write("w", "");
  constexpr int64_t kPages = 150'000;
  int64_t page = static_cast<int64_t>(os::page_size());
  ASSERT_EQ(truncate(path.c_str(), kPages * page), 0);
  auto file = MappedFile::open(path);
  ASSERT_EQ(truncate(path.c_str(), 0), 0);
  std::byte seen{0};
  for (int64_t i = kPages - 1; i >= 0; i -= 2) {
    seen |= file->bytes()[static_cast<size_t>(i * page)];
  }
  EXPECT_EQ(seen, std::byte{0});
  EXPECT_TRUE(file->faulted());
}

TEST(FaultGuard, OtherFilesComeAndGoMeanwhile) {
  FaultGuard::install();
  TemporaryDirectory dir;
  std::string other = dir.write("other", "x");
  std::atomic<bool> done = false;
  std::thread coming([&] {
    while (!done) {
      MappedFile::open(other);
    }
  });
  std::string path = dir.write("w", "");
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(truncate(path.c_str(), 8192), 0);
    auto file = MappedFile::open(path);
    ASSERT_EQ(truncate(path.c_str(), 0), 0);
    EXPECT_EQ(file->bytes()[i % 8192], std::byte{0});
    EXPECT_TRUE(file->faulted());
  }
  done = true;
  coming.join();
}

TEST(FaultGuard, ReadingAheadFindsTheFault) {
  FaultGuard::install();
  TemporaryDirectory dir;
  std::string path = dir.write("w", std::string(64 << 10, 'x'));
  auto file = MappedFile::open(path);
  os::will_need(file->bytes().data() + 10, 60000);
  EXPECT_FALSE(file->faulted());
  ASSERT_EQ(truncate(path.c_str(), 5000), 0);
  os::will_need(file->bytes().data() + 10, 60000);
  EXPECT_TRUE(file->faulted());
}

// The system would call them a bad address, and the file written to would be
// blamed.
TEST(FaultGuard, WritingWhatWasCutIsAFaultOfTheSource) {
  FaultGuard::install();
  TemporaryDirectory dir;
  constexpr size_t kSize = 3 << 20;
  std::string path = dir.write("w", std::string(kSize, 'x'));
  auto file = MappedFile::open(path);
  ASSERT_EQ(truncate(path.c_str(), 1 << 20), 0);
  AtomicFile out(dir / "out");
  out.write(file->bytes().data(), kSize);
  out.commit();
  EXPECT_TRUE(file->faulted());
  EXPECT_EQ(read_file(dir / "out", kSize).size(), kSize);
}

TEST(MappedFile, ToldApartWrittenToAndReplaced) {
  TemporaryDirectory dir;
  std::string path = dir.write("w", "before");
  auto file = MappedFile::open(path);
  EXPECT_FALSE(file->changed());
  // As our own writer does it: the view keeps what it had.
  dir.write("new", "after!");
  os::rename_file(dir / "new", path);
  EXPECT_FALSE(file->changed());
  EXPECT_EQ(file->bytes()[0], std::byte{'b'});
  auto second = MappedFile::open(path);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  dir.write("w", "AFTER!");
  EXPECT_TRUE(second->changed());
  os::remove_path(path);
  EXPECT_FALSE(second->changed());
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
