#pragma once

namespace mlxcel {

class MappedFile;

/// Turns SIGBUS inside a MappedFile into zero pages, from the one concerned to
/// the end of the file, and MappedFile::faulted(). All the rest at once, since
/// a process may only have so many pieces of memory. Faults elsewhere go to the
/// handler that was there before.
struct FaultGuard {
  /// Installs the handler, once per process. A host program that keeps its
  /// own handler simply does not call this.
  static void install();

  static void watch(MappedFile& file);
  static void forget(MappedFile& file) noexcept;

 private:
  static bool absorb(void* address) noexcept;
};

}  // namespace mlxcel
