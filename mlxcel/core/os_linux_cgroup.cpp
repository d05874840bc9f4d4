#include <algorithm>
#include <fstream>
#include <iterator>

#include "mlxcel/core/lines.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/os.h"

namespace mlxcel::os {

namespace {

std::string slurp(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string_view word(std::string_view text) {
  return text.substr(0, text.find_first_of(" \n"));
}

// The number of a file; empty if there is none ("max").
std::optional<uint64_t> read_number(const std::string& path) {
  std::string text = slurp(path);
  auto value = parse_int(word(text));
  return value && *value >= 0 ? std::optional(static_cast<uint64_t>(*value))
                              : std::nullopt;
}

// Bytes of files in memory that nobody would miss. memory.stat has them under
// `key`.
uint64_t droppable(const std::string& path, std::string_view key) {
  std::string text = slurp(path);
  LineReader lines(text);
  for (std::string_view line; lines.next(line);) {
    if (word(line) == key && line.size() > key.size()) {
      return static_cast<uint64_t>(std::max<int64_t>(
          0, parse_int(line.substr(key.size() + 1)).value_or(0)
      ));
    }
  }
  return 0;
}

// What a group has left under its own limit; empty without one.
std::optional<uint64_t> group_room(const std::string& group, bool unified) {
  auto limit =
      read_number(group + (unified ? "/memory.max" : "/memory.limit_in_bytes"));
  // Version 1 writes a huge number for none.
  constexpr uint64_t kNone = uint64_t{1} << 60;
  if (!limit || *limit >= kNone) {
    return std::nullopt;
  }
  uint64_t used =
      read_number(
          group + (unified ? "/memory.current" : "/memory.usage_in_bytes")
      )
          .value_or(0);
  used -= std::min(
      used,
      droppable(
          group + "/memory.stat",
          unified ? "inactive_file" : "total_inactive_file"
      )
  );
  return *limit - std::min(*limit, used);
}

bool lists(std::string_view controllers, std::string_view name) {
  while (!controllers.empty()) {
    size_t end = controllers.find(',');
    if (controllers.substr(0, end) == name) {
      return true;
    }
    controllers.remove_prefix(
        end == std::string_view::npos ? controllers.size() : end + 1
    );
  }
  return false;
}

}  // namespace

std::optional<uint64_t> cgroup_memory_room(const std::string& root) {
  std::optional<uint64_t> room;
  // Lines "ID:controllers:/path"; version 2 names no controllers.
  std::string groups = slurp(root + "/proc/self/cgroup");
  LineReader lines(groups);
  for (std::string_view line; lines.next(line);) {
    size_t first = line.find(':');
    size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) {
      continue;
    }
    std::string_view controllers = line.substr(first + 1, second - first - 1);
    bool unified = controllers.empty();
    if (!unified && !lists(controllers, "memory")) {
      continue;
    }
    std::string tree = root + "/sys/fs/cgroup" + (unified ? "" : "/memory");
    std::string path(line.substr(second + 1));
    // The limits of all groups above hold too.
    while (true) {
      auto here = group_room(path == "/" ? tree : tree + path, unified);
      if (here) {
        room = std::min(room.value_or(*here), *here);
      }
      size_t slash = path.rfind('/');
      if (path.empty() || path == "/" || slash == std::string::npos) {
        break;
      }
      path.resize(slash);
    }
  }
  return room;
}

}  // namespace mlxcel::os
